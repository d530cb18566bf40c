// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Returns notice pods that come back to a node: one that was made after another of its owner was evicted from there. A pod that was made before that does not
// come in the place of the other: a scheduler had chosen the node before it saw the cordon, and has bound the pod late, as it does where the API server is
// slow or a whole fleet is drained at once. Such pods leave like those that were there; taken for pods that come back, they would block the drain for good.
//
// Nor has one come back that is seen first while the node is open.
//
// When a pod was made and when it was deleted the API server says. Where the deletion was not seen, it is when it was asked for, by this process's clock. As far as
// that is ahead, or an API server that deletes is ahead of one that makes, pods are evicted for so much longer before they count: what was deleted first counts at last.
// As far as it is behind, late pods of that time count.
type returns struct {
	turns map[types.UID]int // for each pod that was on the node: after how many evictions in a row it came, each of a pod that had come after the one before
	gone  map[types.UID]*departure
	most  map[types.UID]int // the highest turn of each owner's pods
}

// A departure is a pod whose eviction was carried out, or may have been.
type departure struct {
	owner types.UID
	turn  int
	since time.Time // when it was deleted: a pod that was made before does not come in its place
	seen  bool      // since is the API server's
	there bool      // it was on the node still when it was looked for last, and was not going
}

func newReturns() returns {
	return returns{turns: map[types.UID]int{}, gone: map[types.UID]*departure{}, most: map[types.UID]int{}}
}

// look takes in which pods are on the node at one time, and whether it is open to them.
func (r *returns) look(pods []*corev1.Pod, open bool) {
	for _, d := range r.gone {
		d.there = false
	}
	for _, p := range pods {
		if d := r.gone[p.UID]; d != nil {
			d.look(p)
		}
	}
	for _, p := range pods {
		if _, known := r.turns[p.UID]; known {
			continue
		}
		turn, owner := 0, metav1.GetControllerOfNoCopy(p)
		if owner != nil && !open {
			turn = r.turn(owner.UID, p.CreationTimestamp.Time)
			r.most[owner.UID] = max(r.most[owner.UID], turn)
		}
		r.turns[p.UID] = turn
	}
}

// turn is that of an owner's pod which was made at that time. What is seen together with a pod that is not going yet was bound before that one went.
func (r *returns) turn(owner types.UID, made time.Time) (turn int) {
	for _, d := range r.gone {
		if d.owner == owner && !d.there && !made.Before(d.since) {
			turn = max(turn, d.turn+1)
		}
	}
	return turn
}

// evicted takes in an eviction that was sent at that time and accepted, or may have been.
func (r *returns) evicted(p *corev1.Pod, sent time.Time) {
	owner, d := metav1.GetControllerOfNoCopy(p), r.gone[p.UID]
	if owner == nil || d != nil && d.seen {
		return
	}
	r.gone[p.UID] = &departure{owner: owner.UID, turn: r.turns[p.UID], since: sent.Truncate(time.Second)} // made and deleted are in whole seconds
}

// look takes in when the pod was deleted: the time by which it has to be gone, less what it was given.
func (d *departure) look(p *corev1.Pod) {
	d.there = p.DeletionTimestamp == nil
	if d.there || p.DeletionGracePeriodSeconds == nil {
		return
	}
	deleted := p.DeletionTimestamp.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	if !d.seen || deleted.Before(d.since) { // somebody may have shortened it since
		d.since, d.seen = deleted, true
	}
}
