// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/rollouttest"
)

// holders are those that are gone, by UID.
type holders map[string]bool

func (h holders) Gone(_ context.Context, name, uid string) (bool, error) {
	if name == "" {
		return false, errors.New("no name")
	}
	return h[uid], nil
}

func lender(limit int) (*Slots, holders) {
	gone := holders{}
	return &Slots{Ledger: &rollouttest.Memory{}, Caps: []protocol.Cap{{Max: limit, From: "the test"}}, Holders: gone}, gone
}

func take(t *testing.T, s *Slots, i int) (done bool, blocked string) {
	t.Helper()
	done, blocked, err := s.Take(t.Context(), fmt.Sprintf("fleet/m%d", i), fmt.Sprintf("uid-%d", i), "1", fmt.Sprintf("node-%d", i), fmt.Sprintf("node-uid-%d", i))
	if err != nil || done == (blocked != "") {
		t.Fatalf("take %d: done %t, blocked %q, %v", i, done, blocked, err)
	}
	return done, blocked
}

// R-MA-29: a slot is lent up to the caps, once to each holder, and freed by the holder or by the fact that there is none any more.
func TestSlotsAreLent(t *testing.T) {
	s, gone := lender(2)
	if n := s.Left(t.Context()); n != 2 {
		t.Errorf("%d left of an empty ledger", n)
	}
	for _, i := range []int{1, 2, 1, 2} {
		if done, why := take(t, s, i); !done {
			t.Fatalf("holder %d: %s", i, why)
		}
	}
	if done, why := take(t, s, 3); done || !strings.Contains(why, "the limit is 2 by the test") || s.Left(t.Context()) != 0 {
		t.Errorf("a third slot: %t, %q", done, why)
	}
	if err := errors.Join(s.Free(t.Context(), "fleet/m3", "uid-3", "1"), s.Free(t.Context(), "fleet/m1", "uid-1", "1"), s.Free(t.Context(), "fleet/m1", "uid-1", "1")); err != nil {
		t.Error(err)
	}
	if done, why := take(t, s, 3); !done {
		t.Errorf("after one was given back: %s", why)
	}
	gone["uid-2"] = true
	if done, why := take(t, s, 4); !done {
		t.Errorf("after a holder was gone: %s", why)
	}
	if l, _, err := s.Ledger.Load(t.Context()); err != nil || len(l.Slots) != 2 || l.Loan("uid-2") != nil || l.Validate() != nil {
		t.Errorf("ledger %+v, %v, %v", l, err, l.Validate())
	}
}

// R-MA-29, R-RO-11: caps with keys say nothing of the nodes that they do not name: besides them one slot is lent at a time.
func TestSlotsWithKeysAloneAreLentOneAtATime(t *testing.T) {
	s, _ := lender(5)
	s.Caps[0].Key = "zone/a"
	s.Keys = func(string) []string { return []string{"zone/b"} }
	if n := s.Left(t.Context()); n != 1 {
		t.Errorf("%d left of an empty ledger, want 1", n)
	}
	if done, why := take(t, s, 1); !done {
		t.Fatal(why)
	}
	if done, why := take(t, s, 2); done || !strings.Contains(why, "the limit is 1 by the default") {
		t.Errorf("a second slot: %t, %q", done, why)
	}
}

// R-MA-29: what a holder gives back late, as a process that was frozen meanwhile does, is what it had taken then: the next loan of the same holder stays.
func TestSlotsAreGivenBackByLoan(t *testing.T) {
	s, _ := lender(1)
	ctx := t.Context()
	borrow := func(id string) {
		t.Helper()
		if done, why, err := s.Take(ctx, "fleet/m1", "uid-1", id, "", ""); !done || err != nil {
			t.Fatalf("%t, %q, %v", done, why, err)
		}
	}
	has := func(want string, there bool) {
		t.Helper()
		if id, is, err := s.Loan(ctx, "fleet/m1", "uid-1"); id != want || is != there || err != nil {
			t.Errorf("R-MA-29: the loan is %q, %t, want %q, %t; %v", id, is, want, there, err)
		}
	}
	free := func(id string) {
		t.Helper()
		if err := s.Free(ctx, "fleet/m1", "uid-1", id); err != nil {
			t.Error(err)
		}
	}
	has("", false)
	borrow("1-100")
	borrow("1-100")
	has("1-100", true)
	free("1-100")
	borrow("1-200")
	free("1-100")
	has("1-200", true)
	if done, why := take(t, s, 2); done || why == "" {
		t.Errorf("R-MA-29: two are lent where the cap is one")
	}
	borrow("1-300") // of a process that did not get to store the last one
	free("1-200")
	has("1-300", true)
	free("1-300")
	has("", false)
	borrow("1-400")
	free("")
	has("", false)
	if l, _, err := s.Ledger.Load(ctx); err != nil || l.Validate() != nil {
		t.Error(err, l.Validate())
	}
}

// R-MA-29: of many that take at once, no version of the ledger has more than the cap.
func TestSlotsAreTakenAtOnce(t *testing.T) {
	s, _ := lender(3)
	var wg sync.WaitGroup
	var mu sync.Mutex
	took := 0
	for i := range 12 {
		wg.Go(func() {
			done, _, err := s.Take(t.Context(), fmt.Sprintf("fleet/m%d", i), fmt.Sprintf("uid-%d", i), "1", "", "")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if done {
				took++
			}
		})
	}
	wg.Wait()
	if l, _, err := s.Ledger.Load(t.Context()); err != nil || took != 3 || len(l.Slots) != 3 {
		t.Errorf("%d have taken a slot, the ledger has %d, %v", took, len(l.Slots), err)
	}
}

// R-MA-29: a node is disturbed by a rollout or by its machine, not by both; and both together keep the rollout's cap.
func TestRolloutAndMachineShareTheCap(t *testing.T) {
	f := newFleet(t, 4)
	f.p.Caps = []Cap{{Scope: Total, Max: number(2)}}
	var err error
	f.s.Ledger, err = f.s.Ledger.Borrow(protocol.Loan{Holder: "m", Name: "fleet/m", Node: "node-000", UID: "uid-node-000"}, []protocol.Cap{{Max: 2}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		if d := f.pass(); len(d.Ledger.Slots) > 2 || d.Ledger.Loan("m") == nil {
			t.Fatalf("slots %+v", d.Ledger.Slots)
		}
	}
	if f.runs("v2") != 3 {
		t.Errorf("%d nodes run v2, want all but the one that somebody else has", f.runs("v2"))
	}
	if _, err := f.s.Ledger.Borrow(protocol.Loan{Holder: "n", Name: "fleet/n", Node: "node-000", UID: "uid-node-000"}, []protocol.Cap{{Max: 9}}, nil); !errors.Is(err, protocol.ErrRefused) {
		t.Errorf("a node is lent twice: %v", err)
	}
	f.s.Ledger = f.s.Ledger.Return("m", "")
	f.passes(60, Completed)
}

// R-MA-29: machines that fail count for the detectors like nodes that do: the first that trips them stops the rollout, and each machine counts once.
func TestMachineFailureStopsTheRollout(t *testing.T) {
	f := newFleet(t, 6)
	f.p.Detectors = []Detector{Failures{At: number(2)}}
	f.p.Caps = []Cap{{Scope: Total, Max: number(3)}}
	fail := func(i int) {
		holder, node := fmt.Sprintf("m%d", i), fmt.Sprintf("node-%03d", i)
		l, err := f.s.Ledger.Borrow(protocol.Loan{Holder: holder, Name: "fleet/" + holder, Node: node, UID: "uid-" + node}, []protocol.Cap{{Max: 9}}, nil)
		if err == nil {
			l, err = l.Default(holder, "UpdateTimeout", false)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.s.Ledger = l
	}
	fail(4)
	for range 3 {
		f.pass()
	}
	if f.last.Phase == Frozen || len(f.last.Progress.Outcomes) == 0 {
		t.Fatalf("after one failure: phase %s, outcomes %v", f.last.Phase, f.last.Progress.Outcomes)
	}
	fail(5)
	d := f.passes(3, Frozen)
	if !strings.Contains(d.Progress.Frozen, "2 of 6 nodes failed") {
		t.Errorf("R-MA-29: frozen by %q", d.Progress.Frozen)
	}
	n := 0
	for _, o := range d.Progress.Outcomes {
		if o.Result == FailedBroken {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d failures, want one of each machine: %v", n, d.Progress.Outcomes)
	}
}

// R-MA-29: a critical node whose machine fails stops the rollout at once, and a critical machine the whole domain, until its slot is given back.
func TestCriticalMachineStopsAtOnce(t *testing.T) {
	f := newFleet(t, 3)
	f.node("node-002").Labels = map[string]string{"critical": "yes"}
	f.p.Critical = labels.SelectorFromSet(labels.Set{"critical": "yes"})
	l, err := f.s.Ledger.Borrow(protocol.Loan{Holder: "m", Name: "fleet/m", Node: "node-002", UID: "uid-node-002"}, []protocol.Cap{{Max: 9}}, nil)
	if err == nil {
		f.s.Ledger, err = l.Default("m", "CreateTimeout", false)
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := f.passes(2, Frozen); !strings.Contains(d.Progress.Frozen, `"node-002" is critical`) {
		t.Errorf("R-MA-29: frozen by %q", d.Progress.Frozen)
	}

	s, _ := lender(9)
	take(t, s, 1)
	for range 2 {
		if err := s.Fail(t.Context(), "fleet/m1", "uid-1", "CreateTimeout", true); err != nil {
			t.Fatal(err)
		}
	}
	if done, why := take(t, s, 2); done || !strings.Contains(why, "fleet/m1 has failed: CreateTimeout") || s.Left(t.Context()) != 0 {
		t.Errorf("R-MA-29: another one gets a slot beside a critical machine that has failed: %t, %q", done, why)
	}
	if err := errors.Join(s.Free(t.Context(), "fleet/m1", "uid-1", "1"), s.Fail(t.Context(), "fleet/m1", "uid-1", "late", true)); err != nil {
		t.Fatal(err)
	}
	if done, why := take(t, s, 2); !done {
		t.Errorf("after it was given back: %s", why)
	}
}

// R-MA-29: machines whose nodes are none of the rollout's say nothing of its revision.
func TestMachinesOfOthersDontCount(t *testing.T) {
	f := newFleet(t, 2)
	f.p.Detectors = []Detector{Failures{At: number(1)}}
	l, err := f.s.Ledger.Borrow(protocol.Loan{Holder: "m", Name: "fleet/m", Node: "elsewhere", UID: "uid-elsewhere"}, []protocol.Cap{{Max: 9}}, nil)
	if err == nil {
		f.s.Ledger, err = l.Default("m", "UpdateTimeout", false)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.p.Caps = []Cap{{Scope: Total, Max: number(2)}}
	f.passes(60, Completed)
}
