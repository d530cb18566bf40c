// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/belayproject/belay/rollout/protocol"
)

// A draft is at each moment what the same changes one by one would have made, refusals among them, and the ledger that it was made from stays as it was
// (R-RO-01).
func TestDraftIsTheLedger(t *testing.T) {
	caps := []protocol.Cap{{Max: 6}, {Key: "zone/a", Max: 3}}
	refused := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		var base protocol.Ledger
		for i := range r.IntN(5) {
			base, _ = base.Admit(admissionOf(i, r), caps, nil)
		}
		before, slots := fmt.Sprintf("%+v", base), base.Slots
		l, d := base, base.Draft()
		for range 30 {
			a := admissionOf(r.IntN(12), r)
			var one, two error
			if r.IntN(2) == 0 {
				l, one = l.Admit(a, caps, []protocol.Absent{{UID: "uid-3", Keys: []string{"zone/a"}}})
				two = d.Admit(a, caps, []protocol.Absent{{UID: "uid-3", Keys: []string{"zone/a"}}})
			} else {
				sh := a.Shadow
				if s := l.Slot(sh.UID); s != nil {
					sh.Report.Attempt, sh.Report.Phase = s.Attempt-protocol.Attempt(r.IntN(2)), protocol.PhaseDone
				}
				l, one = l.Release(sh)
				two = d.Release(sh)
			}
			if one != nil {
				refused++
			}
			if !reflect.DeepEqual(l, d.Ledger) && len(l.Slots)+len(d.Slots) > 0 || fmt.Sprint(one) != fmt.Sprint(two) {
				t.Fatalf("seed %d: the draft is\n%+v (%v), want\n%+v (%v)", seed, d.Ledger, two, l, one)
			}
		}
		if after := fmt.Sprintf("%+v", base); after != before || fmt.Sprintf("%+v", slots) != fmt.Sprintf("%+v", base.Slots) {
			t.Fatalf("seed %d: the ledger was changed from\n%s\nto\n%s", seed, before, after)
		}
	}
	if refused < 500 {
		t.Errorf("only %d changes were refused: the test shows little", refused)
	}
}

func admissionOf(i int, r *rand.Rand) protocol.Admission {
	node := fmt.Sprintf("n%d", i)
	sh := protocol.Shadow{Node: node, UID: "uid-" + fmt.Sprint(i), Report: protocol.Report{Known: r.IntN(8) > 0}}
	return protocol.Admission{Shadow: sh, Rollout: "r", Keys: []string{"zone/" + string("ab"[i%2])}}
}
