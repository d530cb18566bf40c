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
// Times are compared with each other, those of the API server alone: clocks of others need not agree with it.
type returns struct {
	turns map[types.UID]int // for each pod that was on the node: after how many evictions in a row it came, each of a pod that had come after the one before
	gone  map[types.UID]*departure
	most  map[types.UID]int // the last turn of each owner's pods
}

// A departure is a pod that was evicted.
type departure struct {
	owner types.UID
	turn  int
	since time.Time // a pod that was made before does not come in its place
	seen  bool      // that is when it was deleted; or else it was made a second before that, which is not before it
}

func newReturns() returns {
	return returns{turns: map[types.UID]int{}, gone: map[types.UID]*departure{}, most: map[types.UID]int{}}
}

// look takes in which pods are on the node.
func (r *returns) look(pods []*corev1.Pod) {
	first := len(r.turns) == 0
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
		if owner != nil && !first {
			turn = r.turn(owner.UID, p.CreationTimestamp.Time)
			r.most[owner.UID] = max(r.most[owner.UID], turn)
		}
		r.turns[p.UID] = turn
	}
}

// turn is that of an owner's pod which was made at that time.
func (r *returns) turn(owner types.UID, made time.Time) (turn int) {
	for _, d := range r.gone {
		if d.owner == owner && !made.Before(d.since) {
			turn = max(turn, d.turn+1)
		}
	}
	return turn
}

// evicted takes in that the API server has accepted an eviction.
func (r *returns) evicted(p *corev1.Pod) {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil || r.gone[p.UID] != nil {
		return
	}
	r.gone[p.UID] = &departure{owner: owner.UID, turn: r.turns[p.UID], since: p.CreationTimestamp.Add(time.Second)}
}

// look takes in when the pod was deleted: the time by which it has to be gone, less what it was given. Whoever shortens that moves it to later.
func (d *departure) look(p *corev1.Pod) {
	if p.DeletionTimestamp == nil || p.DeletionGracePeriodSeconds == nil {
		return
	}
	deleted := p.DeletionTimestamp.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	if !d.seen || deleted.Before(d.since) {
		d.since, d.seen = deleted, true
	}
}
