// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/rollouttest"
)

// R-RO-01: the ledger in memory.
func TestMemory(t *testing.T) {
	var mu sync.Mutex
	domains := map[string]*rollouttest.Memory{}
	rollouttest.TestLedgers(t, func(_ *testing.T, domain string) rollout.LedgerStore {
		mu.Lock()
		defer mu.Unlock()
		if domains[domain] == nil {
			domains[domain] = &rollouttest.Memory{}
		}
		return domains[domain]
	})
}

// What Update decides on is what it has loaded, and it stores nothing that is not valid or not new.
func TestUpdate(t *testing.T) {
	var m rollouttest.Memory
	if _, err := rollout.Update(t.Context(), &m, false, same); err == nil {
		t.Error("Update of no ledger: got no error, want one: only a caller that knows that there was none may create it")
	}
	if _, err := rollout.Update(t.Context(), &m, true, same); err != nil {
		t.Fatal(err)
	}
	_, before, _ := m.Load(t.Context())
	if _, err := rollout.Update(t.Context(), &m, false, same); err != nil {
		t.Fatal(err)
	}
	if _, err := rollout.Update(t.Context(), &m, false, func(l protocol.Ledger) (protocol.Ledger, error) { l.Epoch = -1; return l, nil }); err == nil {
		t.Error("Update with epoch -1: got no error, want one")
	}
	refusal := errors.New("no")
	if _, err := rollout.Update(t.Context(), &m, false, func(l protocol.Ledger) (protocol.Ledger, error) { return l, refusal }); !errors.Is(err, refusal) {
		t.Errorf("Update that is refused: got error %v, want %v as it is", err, refusal)
	}
	if _, after, _ := m.Load(t.Context()); after != before {
		t.Errorf("got version %q after %q, want nothing written", after, before)
	}
	slot := protocol.Slot{Node: "a", UID: "u", Attempt: 2, Rollout: "r"}
	for _, k := range []protocol.Attempt{2, 1} { // the slot goes back to an attempt of before
		slot.Attempt = k
		_, err := rollout.Update(t.Context(), &m, false, func(l protocol.Ledger) (protocol.Ledger, error) {
			l.Epoch, l.Slots = 2, []protocol.Slot{slot}
			return l, nil
		})
		if (err == nil) != (k == 2) {
			t.Errorf("Update with attempt %d: got %v", k, err)
		}
	}
	if l, _, _ := m.Load(t.Context()); len(l.Slots) != 1 || l.Slots[0].Attempt != 2 {
		t.Errorf("got slots %+v, want the one with attempt 2", l.Slots)
	}
}

func same(l protocol.Ledger) (protocol.Ledger, error) { return l, nil }
