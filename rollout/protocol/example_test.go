// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"fmt"

	"github.com/belayproject/belay/rollout/protocol"
)

// One node goes through an attempt; a second one has to wait for its slot.
func Example() {
	var ledger protocol.Ledger
	caps := []protocol.Cap{{Max: 1, From: "the rollout's policy"}}
	shadow := func(name string) protocol.Shadow {
		sh := protocol.NewShadow(name, "uid-of-"+name, ledger)
		sh.Report.Known = true // its agent has spoken
		return sh
	}
	a, b := shadow("a"), shadow("b")

	ledger, _ = ledger.Admit(protocol.Admission{Shadow: a, Rollout: "r"}, caps, nil)
	_, err := ledger.Admit(protocol.Admission{Shadow: b, Rollout: "r"}, caps, nil)
	fmt.Println(err)

	a.Orders, _ = a.Give(*ledger.Slot(a.UID), "kubelet-v2", false) // the controller
	a.Report, _ = a.Answer(protocol.EventCommit)                   // the agent
	fmt.Println(protocol.StateOf(ledger, a))

	a.Orders, _ = a.Go(a.Report.Attempt) // the node is drained
	for _, event := range []protocol.Event{protocol.EventApply, protocol.EventApplied, protocol.EventVerified} {
		a.Report, _ = a.Answer(event)
	}
	ledger, _ = ledger.Release(a)
	_, err = ledger.Admit(protocol.Admission{Shadow: b, Rollout: "r"}, caps, nil)
	fmt.Println(protocol.StateOf(ledger, a), err)
	// Output:
	// Admit: node "b" has to wait: 1 nodes are away, the limit is 1 by the rollout's policy (rule Cap)
	// Committed
	// Resting <nil>
}
