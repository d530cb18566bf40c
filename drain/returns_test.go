// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// madeAt is a pod of one owner that was made so many seconds after the first.
func madeAt(name string, seconds int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), CreationTimestamp: metav1.Unix(int64(1000+seconds), 0),
		OwnerReferences: []metav1.OwnerReference{{UID: "owner", Controller: ptr.To(true)}},
	}}
}

// deletedAt is a pod that was deleted so many seconds after the first was made, and has so long.
func deletedAt(p *corev1.Pod, seconds, grace int) *corev1.Pod {
	p = p.DeepCopy()
	p.DeletionTimestamp = ptr.To(metav1.Unix(int64(1000+seconds+grace), 0))
	p.DeletionGracePeriodSeconds = ptr.To(int64(grace))
	return p
}

// R-DR-03: which pods have come back, by when the API server says that they were made and deleted.
func TestPodsThatHaveComeBack(t *testing.T) {
	first := madeAt("first", 0)
	for _, c := range []struct {
		name string
		seen [][]*corev1.Pod // after the eviction of the first, which was sent after 110.9 seconds
		want int
	}{
		{"made before the deletion", [][]*corev1.Pod{{deletedAt(first, 100, 30), madeAt("next", 99)}}, 0},
		{"made at the deletion", [][]*corev1.Pod{{deletedAt(first, 100, 30), madeAt("next", 100)}}, 1},
		{"seen with a time that was shortened", [][]*corev1.Pod{{deletedAt(first, 100, 30)}, {deletedAt(first, 115, 1)}, {madeAt("next", 105)}}, 1},
		{"made when one was evicted that was not seen to go", [][]*corev1.Pod{{madeAt("next", 110)}}, 1},
		{"made before one was evicted that was not seen to go", [][]*corev1.Pod{{madeAt("next", 109)}}, 0},
		{"beside one that does not go yet", [][]*corev1.Pod{{first, madeAt("next", 200)}, {deletedAt(first, 150, 1), madeAt("next", 200)}}, 0},
		{"after one that went late", [][]*corev1.Pod{{first}, {}, {madeAt("next", 200)}}, 1},
		{"two at once", [][]*corev1.Pod{{madeAt("next", 111), madeAt("other", 112)}}, 1},
		{"one that was there", [][]*corev1.Pod{{first}, {first}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReturns()
			r.look([]*corev1.Pod{first}, false)
			r.evicted(first, time.Unix(1110, 9e8))
			for _, pods := range c.seen {
				r.look(pods, false)
			}
			if got := r.most["owner"]; got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// Each owner's pods count for themselves, and what is seen first while the node is open does not count.
func TestPodsOfOthersAndOfAnOpenNode(t *testing.T) {
	r, first := newReturns(), madeAt("first", 0)
	r.look([]*corev1.Pod{first}, false)
	r.evicted(first, time.Unix(1100, 0))
	other := madeAt("other", 150)
	other.OwnerReferences[0].UID = "another"
	r.look([]*corev1.Pod{other}, false)
	if r.most["owner"] != 0 || r.most["another"] != 0 {
		t.Errorf("of another owner: got %v, want none", r.most)
	}
	next := madeAt("next", 150)
	r.look([]*corev1.Pod{next}, true)
	r.look([]*corev1.Pod{next}, false)
	if r.most["owner"] != 0 {
		t.Errorf("on an open node: got %v, want none", r.most)
	}
}

// One that is asked to go again goes by the later time, unless it was seen to go.
func TestPodsThatAreEvictedAgain(t *testing.T) {
	for _, c := range []struct {
		first *corev1.Pod // as it was seen between the two evictions
		want  int
	}{{madeAt("first", 0), 0}, {deletedAt(madeAt("first", 0), 100, 1), 1}} {
		r := newReturns()
		r.look([]*corev1.Pod{c.first}, false)
		for _, at := range []int64{1100, 1200} {
			r.evicted(c.first, time.Unix(at, 0))
			r.look([]*corev1.Pod{c.first}, false)
		}
		r.look([]*corev1.Pod{madeAt("next", 150)}, false)
		if got := r.most["owner"]; got != c.want {
			t.Errorf("seen as deleted at %v: got %d, want %d", c.first.DeletionTimestamp, got, c.want)
		}
	}
}

// However far the clocks of two API servers are apart, pods that come back again and again are noticed at last.
func TestPodsThatComeBackAreNoticedWhateverTheClocks(t *testing.T) {
	for apart, want := range map[int]int{-7: 2, 0: 2, 7: 8} { // by which the one that deletes is ahead of the one that makes
		r, p := newReturns(), madeAt("first", 0)
		r.look([]*corev1.Pod{p}, false)
		rounds := 0
		for i := 1; r.most["owner"] < planBounces; i++ {
			r.evicted(p, time.Unix(0, 0))
			r.look([]*corev1.Pod{deletedAt(p, 3*i+apart, 1)}, false)
			p = madeAt("next-"+strconv.Itoa(i), 3*i)
			r.look([]*corev1.Pod{p}, false)
			if rounds = i; i > 20 {
				t.Fatalf("%d seconds apart: after %d evictions it is not noticed", apart, i)
			}
		}
		if rounds != want {
			t.Errorf("%d seconds apart: got noticed after %d evictions, want %d", apart, rounds, want)
		}
	}
}
