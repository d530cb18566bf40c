// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/identity"
)

// tap is a Source and a Canary that gives away its handler.
type tap struct {
	handlers chan cache.ResourceEventHandler
}

func (s tap) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	s.handlers <- h
	return nil, nil
}
func (tap) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }
func (tap) Key() types.NamespacedName                                       { return keyTo(own) }
func (tap) Written(string) (time.Duration, bool)                            { return 0, true }

// tapped returns a view that runs, and its handler.
func tapped(t testing.TB) (*identity.View, cache.ResourceEventHandler) {
	s := tap{make(chan cache.ResourceEventHandler, 1)}
	view, err := identity.NewView(identity.ViewConfig{Source: s, Canary: s})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- view.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return view, <-s.handlers
}

// manyLeases are as large as those of members.
func manyLeases(version string, n int) []*coordinationv1.Lease {
	leases := make([]*coordinationv1.Lease, n)
	for i := range leases {
		name := fmt.Sprintf("belay-agent-node-%05d.example.com", i)
		leases[i] = &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: space, Name: name, UID: types.UID(fmt.Sprintf("c8f5bf43-8f0c-4d8c-9d0a-%012d", i)), ResourceVersion: version,
				Labels: map[string]string{identity.ComponentLabel: "belay-agent", identity.HostLabel: name},
				Annotations: map[string]string{
					identity.HostAnnotation: name, identity.EpochAnnotation: "1234567",
					identity.FingerprintAnnotation: fmt.Sprintf(`{"host":%q,"bootID":"c8f5bf43-8f0c-4d8c-9d0a-%012d"}`, name, i),
				},
			},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(name + "_1"), RenewTime: &metav1.MicroTime{Time: time.Unix(int64(version[0]), 0)}},
		}
	}
	return leases
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestViewOfTenThousandIsSmall measures what a view keeps of a member besides the Lease, which the informer keeps: at most 1 KiB, also after
// each has been renewed many times.
func TestViewOfTenThousandIsSmall(t *testing.T) {
	const n, bar = 10_000, 1024
	view, handler := tapped(t)
	first, second := manyLeases("1", n), manyLeases("2", n)
	before := heap()
	for _, lease := range first {
		handler.OnAdd(lease, true)
	}
	for i, lease := range second {
		handler.OnUpdate(first[i], lease)
	}
	used := (int64(heap()) - int64(before)) / n
	t.Logf("%d bytes a member", used)
	if used > bar {
		t.Errorf("the view keeps %d bytes of a member, want at most %d", used, bar)
	}
	if got := len(view.Peers(identity.Alive)); got != n {
		t.Errorf("%d are alive, want all", got)
	}
	runtime.KeepAlive(first)
	runtime.KeepAlive(second)
}

// TestRenewalIsCheap shows that a renewal that changes nothing allocates nothing and wakes nobody, however many peers there are.
func TestRenewalIsCheap(t *testing.T) {
	const n = 1000
	_, handler := tapped(t)
	versions := [][]*coordinationv1.Lease{manyLeases("1", n), manyLeases("2", n)}
	for _, lease := range versions[0] {
		handler.OnAdd(lease, false)
	}
	round := 0
	allocated := testing.AllocsPerRun(10, func() {
		round++
		for i, lease := range versions[round%2] {
			handler.OnUpdate(versions[1-round%2][i], lease)
		}
	})
	if allocated > n/10 { // the view's own goroutine may do something meanwhile
		t.Errorf("%d renewals make %v allocations, want next to none", n, allocated)
	}
}

func BenchmarkViewRenewal(b *testing.B) {
	const n = 10_000
	_, handler := tapped(b)
	versions := [][]*coordinationv1.Lease{manyLeases("1", n), manyLeases("2", n)}
	for _, lease := range versions[0] {
		handler.OnAdd(lease, false)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		round := 1 + i/n
		handler.OnUpdate(versions[(round+1)%2][i%n], versions[round%2][i%n])
	}
}

func BenchmarkViewPeers(b *testing.B) {
	view, handler := tapped(b)
	for _, lease := range manyLeases("1", 10_000) {
		handler.OnAdd(lease, false)
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(view.Peers()) != 10_000 {
			b.Fatal("want all")
		}
	}
}
