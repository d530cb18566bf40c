// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"strings"
	"testing"

	"github.com/belayproject/belay/rollout/protocol"
)

// The walk notices numbers that go back, and an admission by a closed ledger.
func TestRegress(t *testing.T) {
	for _, c := range []struct {
		name        string
		was, is     protocol.Ledger
		order, then protocol.Orders
		want        string
	}{
		{name: "nothing", want: ""},
		{name: "an admission", is: protocol.Ledger{Epoch: 1}, order: protocol.Orders{Grant: 1}, then: protocol.Orders{Grant: 2, Revoked: 1}, want: ""},
		{name: "the epoch", was: protocol.Ledger{Epoch: 2}, is: protocol.Ledger{Epoch: 1}, want: "I3: the epoch"},
		{name: "a closed ledger", was: protocol.Ledger{}.Close(protocol.Closure{Request: "r"}), is: protocol.Ledger{Epoch: 1}, want: "I5"},
		{name: "a grant", order: protocol.Orders{Grant: 2}, then: protocol.Orders{Grant: 1}, want: "I3: a number of n0"},
		{name: "a revocation", order: protocol.Orders{Revoked: 2}, then: protocol.Orders{Revoked: 1}, want: "I3: a number of n0"},
		{name: "a go", order: protocol.Orders{Proceed: 2}, then: protocol.Orders{Proceed: 1}, want: "I3: a number of n0"},
		{name: "an undo", order: protocol.Orders{Undo: 2}, then: protocol.Orders{Undo: 1}, want: "I3: a number of n0"},
	} {
		w := newWalk(Options{Nodes: 1, Cap: 1, Attempts: 1})
		w.from = w.first()
		w.from.ledger = w.ledgers.number(c.was)
		w.from = w.from.put(0, w.from.nodes[0].wrote(w.shadows.number(protocol.Shadow{Orders: c.order})))
		s := w.from
		s.ledger = w.ledgers.number(c.is)
		s = s.put(0, s.nodes[0].wrote(w.shadows.number(protocol.Shadow{Orders: c.then})))
		if got := w.regress(s); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s goes back: got %q, want %q", c.name, got, c.want)
		}
	}
}
