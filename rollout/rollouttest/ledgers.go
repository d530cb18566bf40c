// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// patience bounds each case of the suite.
const patience = time.Minute

// TestLedgers is the suite that every [rollout.LedgerStore] must pass. Each call of open returns a store of the same domain as the call before, as
// a second process would open it; each test has a domain of its own, which the name stands for. Among the tests are the shortest runs that break a
// promise of the protocol without one of its rules, as [Explore] finds them: on the store, with all rules, none of them can be made.
func TestLedgers(t *testing.T, open func(t *testing.T, domain string) rollout.LedgerStore) {
	type test struct {
		name string
		run  func(context.Context, *testing.T, func() rollout.LedgerStore)
	}
	tests := []test{
		{"absent", absent}, {"created-once", createdOnce}, {"stale-store", staleStore}, {"stale-admission", staleAdmission}, {"as-written", asWritten},
		{"many-writers", manyWriters}, {"large", large}, {"cancelled", cancelled},
	}
	for i, rule := range Rules()[1:] {
		tests = append(tests, test{fmt.Sprintf("replay-%d", i+1), func(ctx context.Context, t *testing.T, open func() rollout.LedgerStore) {
			replay(ctx, t, open, rule)
		}})
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c.run(ctx, t, func() rollout.LedgerStore { return open(t, c.name) })
		})
	}
}

func absent(ctx context.Context, t *testing.T, open func() rollout.LedgerStore) {
	if l, version, err := open().Load(ctx); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of no ledger: got %+v, version %q, error %v, want fs.ErrNotExist: an empty ledger would be one that allows all", l, version, err)
	}
	if _, err := open().Store(ctx, protocol.Ledger{}, "1"); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("Store over a version of no ledger: got error %v, want ErrConflict", err)
	}
}

func createdOnce(ctx context.Context, t *testing.T, open func() rollout.LedgerStore) {
	a, b := open(), open()
	if _, err := a.Store(ctx, protocol.Ledger{Epoch: 1}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Store(ctx, protocol.Ledger{Epoch: 2}, ""); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("second creation: got error %v, want ErrConflict: two processes that both see no ledger must not both begin one", err)
	}
	if l, _, err := b.Load(ctx); err != nil || l.Epoch != 1 {
		t.Errorf("Load: got %+v, %v, want the ledger that was created first", l, err)
	}
}

// staleStore is the run of 6 steps that breaks a cap without compare-and-swap.
func staleStore(ctx context.Context, t *testing.T, open func() rollout.LedgerStore) {
	a, b := open(), open()
	first, err := a.Store(ctx, protocol.Ledger{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Store(ctx, protocol.Ledger{Epoch: 1}, first); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Store(ctx, protocol.Ledger{Epoch: 7}, first); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("Store over a version that is gone: got error %v, want ErrConflict", err)
	}
	if l, _, err := a.Load(ctx); err != nil || l.Epoch != 1 {
		t.Errorf("Load after the conflict: got %+v, %v, want epoch 1: nothing may be written", l, err)
	}
}

// staleAdmission lets two controllers that have read the same ledger admit a node each, under a cap of one.
func staleAdmission(ctx context.Context, t *testing.T, open func() rollout.LedgerStore) {
	a, b := open(), open()
	if _, err := a.Store(ctx, protocol.Ledger{}, ""); err != nil {
		t.Fatal(err)
	}
	stored := 0
	type read struct {
		store   rollout.LedgerStore
		ledger  protocol.Ledger
		version string
	}
	var reads []read
	for _, s := range []rollout.LedgerStore{a, b} {
		l, version, err := s.Load(ctx)
		if err != nil {
			t.Fatal(err)
		}
		reads = append(reads, read{s, l, version})
	}
	for i, r := range reads {
		next, err := admit(r.ledger, i)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.store.Store(ctx, next, r.version); err == nil {
			stored++
		}
	}
	if stored != 1 {
		t.Errorf("got %d of two admissions stored, want 1: the cap is 1", stored)
	}
}

func admit(l protocol.Ledger, i int) (protocol.Ledger, error) {
	name := fmt.Sprintf("node-%d", i)
	sh := protocol.NewShadow(name, "uid-of-"+name, protocol.Ledger{})
	sh.Report.Known = true
	return l.Admit(protocol.Admission{Shadow: sh, Rollout: "r", Keys: []string{"zone/a"}}, []protocol.Cap{{Max: 1}}, nil)
}

func asWritten(ctx context.Context, t *testing.T, open func() rollout.LedgerStore) {
	want := protocol.Ledger{
		Epoch: 1 << 60, Fence: 1 << 50,
		Closures: []protocol.Closure{{Scope: "rollout-uid", Request: "abort-1", Reason: "it \"broke\"\n<&> é"}, {Request: "all"}},
		Slots: []protocol.Slot{{
			Node: "a.example.com", UID: "u-1", Attempt: 1<<60 - 1, Rollout: "r", Keys: []string{"class/Intrusive", "zone/a"}, State: protocol.SlotQuarantined,
		}, {Node: "b", UID: "u-2", Attempt: 3, Rollout: "r"}},
	}
	version, err := open().Store(ctx, want, "")
	if err != nil {
		t.Fatal(err)
	}
	got, read, err := open().Load(ctx)
	if err != nil || !reflect.DeepEqual(got, want) || read != version {
		t.Errorf("Load: got %+v, version %q, %v, want %+v, version %q, as it was written", got, read, err, want, version)
	}
}

// manyWriters lets each of them take the one slot and give it back, again and again.
func manyWriters(ctx context.Context, t *testing.T, open func() rollout.LedgerStore) {
	const writers, turns = 8, 5
	if _, err := open().Store(ctx, protocol.Ledger{}, ""); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var attempts []protocol.Attempt
	var wg sync.WaitGroup
	for i := range writers {
		s := open()
		wg.Go(func() {
			for range turns {
				k, err := turn(ctx, s, i)
				if err != nil {
					t.Errorf("writer %d: %v", i, err)
					return
				}
				mu.Lock()
				attempts = append(attempts, k)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(attempts)
	if n := len(slices.Compact(attempts)); n != writers*turns {
		t.Errorf("got %d different attempts, want %d: none may be given twice", n, writers*turns)
	}
	if l, _, err := open().Load(ctx); err != nil || int(l.Epoch) != writers*turns || len(l.Slots) != 0 {
		t.Errorf("Load: got epoch %d with %d slots, %v, want %d with none: no write may be lost", l.Epoch, len(l.Slots), err, writers*turns)
	}
}

// turn waits for the slot, takes it, and gives it back.
func turn(ctx context.Context, s rollout.LedgerStore, i int) (k protocol.Attempt, err error) {
	for {
		l, err := rollout.Update(ctx, s, false, func(l protocol.Ledger) (protocol.Ledger, error) { return admit(l, i) })
		if err == nil {
			k = l.Epoch
			break
		}
		if !errors.Is(err, protocol.ErrRefused) {
			return 0, err
		}
	}
	uid := fmt.Sprintf("uid-of-node-%d", i)
	_, err = rollout.Update(ctx, s, false, func(l protocol.Ledger) (protocol.Ledger, error) {
		if len(l.Slots) != 1 || l.Slots[0].UID != uid {
			return l, fmt.Errorf("the slots are %+v, want the one of %q alone", l.Slots, uid)
		}
		return l.Gone(uid)
	})
	return k, err
}

// large is a domain of 5,000 nodes of which 5 % are disrupted, with long names.
func large(ctx context.Context, t *testing.T, open func() rollout.LedgerStore) {
	var l protocol.Ledger
	for i := range 250 {
		l.Epoch++
		l.Slots = append(l.Slots, protocol.Slot{
			Node: fmt.Sprintf("ip-10-0-%d.eu-central-1.compute.internal.example.com", i), UID: fmt.Sprintf("c5a4b820-39a6-46e8-9a2f-%012d", i),
			Attempt: l.Epoch, Rollout: "0b7e2f8a-2f0f-4d5c-9a55-0a4f7f1f2f10", Keys: []string{"class/Intrusive", "group/workers", "zone/eu-central-1a"},
		})
	}
	if _, err := open().Store(ctx, l, ""); err != nil {
		t.Fatal(err)
	}
	if got, _, err := open().Load(ctx); err != nil || !reflect.DeepEqual(got, l) {
		t.Errorf("Load: got %d slots, %v, want the 250 that were stored", len(got.Slots), err)
	}
}

func cancelled(ctx context.Context, t *testing.T, open func() rollout.LedgerStore) {
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := open().Store(over, protocol.Ledger{}, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("Store: got error %v, want context.Canceled", err)
	}
	if _, _, err := open().Load(over); !errors.Is(err, context.Canceled) {
		t.Errorf("Load: got error %v, want context.Canceled", err)
	}
	if _, err := rollout.Update(over, open(), true, func(l protocol.Ledger) (protocol.Ledger, error) { l.Epoch++; return l, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("Update: got error %v, want context.Canceled", err)
	}
}
