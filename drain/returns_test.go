// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// madeAt is a pod of one owner that was made so many seconds after the first.
func madeAt(name string, seconds int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), CreationTimestamp: metav1.Unix(int64(1000+seconds), 0),
		OwnerReferences: []metav1.OwnerReference{{UID: "owner", Controller: new(true)}},
	}}
}

// deletedAt is a pod that was deleted so many seconds after the first was made, and has so long.
func deletedAt(p *corev1.Pod, seconds, grace int) *corev1.Pod {
	p = p.DeepCopy()
	p.DeletionTimestamp = new(metav1.Unix(int64(1000+seconds+grace), 0))
	p.DeletionGracePeriodSeconds = new(int64(grace))
	return p
}

// R-DR-03: which pods have come back, by when the API server says that they were made and deleted.
func TestPodsThatHaveComeBack(t *testing.T) {
	first := madeAt("first", 0)
	for _, c := range []struct {
		name string
		seen [][]*corev1.Pod // after the eviction of the first
		want int
	}{
		{"made before the deletion", [][]*corev1.Pod{{deletedAt(first, 100, 30), madeAt("next", 99)}}, 0},
		{"made at the deletion", [][]*corev1.Pod{{deletedAt(first, 100, 30), madeAt("next", 100)}}, 1},
		{"seen with a time that was shortened", [][]*corev1.Pod{{deletedAt(first, 100, 30)}, {deletedAt(first, 110, 1)}, {madeAt("next", 105)}}, 1},
		{"made after one that was not seen to go", [][]*corev1.Pod{{madeAt("next", 1)}}, 1},
		{"as old as one that was not seen to go", [][]*corev1.Pod{{madeAt("next", 0)}}, 0},
		{"two at once", [][]*corev1.Pod{{madeAt("next", 5), madeAt("other", 6)}}, 1},
		{"one that was there", [][]*corev1.Pod{{first}, {first}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReturns()
			r.look([]*corev1.Pod{first})
			r.evicted(first)
			for _, pods := range c.seen {
				r.look(pods)
			}
			if got := r.most["owner"]; got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// Each that is evicted and comes back counts one more, however far the clocks of two API servers are apart.
func TestPodsComeBackAgainAndAgain(t *testing.T) {
	for _, apart := range []int{0, 7} { // by which the one that deletes is ahead of the one that makes
		r, p := newReturns(), madeAt("first", 0)
		r.look([]*corev1.Pod{p})
		rounds := 0
		for i := 1; r.most["owner"] < planBounces; i++ {
			r.evicted(p)
			r.look([]*corev1.Pod{deletedAt(p, 3*i+apart, 1)})
			p = madeAt("next-"+time.Duration(i).String(), 3*i)
			r.look([]*corev1.Pod{p})
			if rounds = i; i > 20 {
				t.Fatalf("%d seconds apart: after %d evictions it is not noticed", apart, i)
			}
		}
		if want := map[int]int{0: 2, 7: 8}[apart]; rounds != want {
			t.Errorf("%d seconds apart: got noticed after %d evictions, want %d", apart, rounds, want)
		}
	}
}
