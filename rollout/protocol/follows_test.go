// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"strings"
	"testing"

	"github.com/belayproject/belay/rollout/protocol"
)

// What may become of a ledger and of its slots (R-RO-01).
func TestFollows(t *testing.T) {
	slot := func(node string, k protocol.Attempt, state protocol.SlotState) protocol.Slot {
		return protocol.Slot{Node: node, UID: "u-" + node, Attempt: k, Rollout: "r", State: state}
	}
	renamed, other, retried := slot("a", 4, ""), slot("a", 4, ""), slot("a", 10, "")
	renamed.Node, other.Rollout, retried.Rollout = "z", "s", "s"
	was := protocol.Ledger{Epoch: 9, Fence: 3, Slots: []protocol.Slot{slot("a", 4, ""), slot("b", 5, protocol.SlotBroken), slot("c", 9, "")}}
	for _, c := range []struct {
		name         string
		epoch, fence protocol.Attempt
		slots        []protocol.Slot
		want         string
	}{
		{"the same", 9, 3, was.Slots, ""},
		{"epoch decreases", 8, 3, nil, "epoch is 8, want 9 or more"},
		{"fence decreases", 9, 2, nil, "fence is 2, want 3 or more"},
		{"released", 9, 3, was.Slots[1:], ""},
		{"admitted", 10, 4, append(was.Slots[:3:3], slot("d", 10, "")), ""},
		{"retried", 10, 3, []protocol.Slot{slot("b", 10, protocol.SlotBroken)}, ""},
		{"released and admitted", 10, 3, []protocol.Slot{slot("b", 10, "")}, ""},
		{"marked", 9, 3, []protocol.Slot{slot("a", 4, protocol.SlotSuspect), slot("b", 5, protocol.SlotQuarantined)}, ""},
		{"unmarked", 9, 3, []protocol.Slot{slot("b", 5, "")}, `slots[0]: state is "", want none that is better than "Broken"`},
		{"better", 9, 3, []protocol.Slot{slot("a", 4, ""), slot("b", 5, protocol.SlotSuspect)}, `slots[1]: state is "Suspect"`},
		{"attempt decreases", 9, 3, []protocol.Slot{slot("a", 3, "")}, "attempt is 3, want 4 or more"},
		{"node renamed", 9, 3, []protocol.Slot{renamed}, `node is "z", and the UID is that of node "a"`},
		{"rollout changes", 9, 3, []protocol.Slot{other}, `rollout is "s", want "r" as long as the attempt is 4`},
		{"retried for another one", 10, 3, []protocol.Slot{retried}, ""},
	} {
		err := protocol.Ledger{Epoch: c.epoch, Fence: c.fence, Slots: c.slots}.Follows(was)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}
