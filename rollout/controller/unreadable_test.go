// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// R-RO-01: while the ledger is one that somebody has edited into something else, every rollout says so, and nothing is written but that: no node is admitted,
// granted, cordoned or given back. When it is mended they go on, whenever it was spoilt.
func TestUnreadableLedgerHoldsEverything(t *testing.T) {
	for at := 1; at < 12; at++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 6, 2)
			store := &spoilt{LedgerStore: w.o.Ledger}
			w.o.Ledger = store
			w.start()
			w.want()
			w.steps(at)
			w.sound()
			store.why = fmt.Errorf("%w: slots[1]: another slot has the same node", rollout.ErrUnreadable)
			writes, ledger := []string{}, w.c.Ledger()
			w.client.OnWrite = func(what string, done bool) {
				if done {
					writes = append(writes, what)
				}
			}
			w.steps(5)
			_, shown, _ := w.c.Rollout(uid)
			if len(w.errs) != 5 || !strings.Contains(shown.Message, "slots[1]: another slot has the same node") {
				t.Errorf("spoilt at step %d: %d errors, it shows %q, want 5, and what is wrong with the ledger", at, len(w.errs), shown.Message)
			}
			if !reflect.DeepEqual(writes, []string{"progress " + uid}) || !reflect.DeepEqual(w.c.Ledger(), ledger) {
				t.Errorf("spoilt at step %d: got writes %q, want the one that says so", at, writes)
			}
			store.why, w.errs, w.client.OnWrite = nil, nil, nil
			w.untilPhase(rollout.Completed)
			w.steps(3)
			w.sound()
			w.tidy()
			w.once(6, "v2")
		})
	}
}

// A spoilt store can't be read as long as there is a reason.
type spoilt struct {
	rollout.LedgerStore
	why error
}

func (s *spoilt) Load(ctx context.Context) (protocol.Ledger, string, error) {
	if s.why != nil {
		return protocol.Ledger{}, "", s.why
	}
	return s.LedgerStore.Load(ctx)
}
