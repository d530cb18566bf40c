// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

func ledger(epoch int, more string) string {
	return fmt.Sprintf(`{"epoch":%d%s}`, epoch, more)
}

// slots are slots "node attempt [state]", and their number.
func slots(all ...string) string {
	var out []string
	for _, s := range all {
		f := append(strings.Fields(s), "")
		state := ""
		if f[2] != "" {
			state = `,"state":"` + f[2] + `"`
		}
		out = append(out, `{"node":"`+f[0]+`","uid":"u-`+f[0]+`","rollout":"r","attempt":`+f[1]+state+`}`)
	}
	return fmt.Sprintf(`,"count":%d,"slots":[%s]`, len(all), strings.Join(out, ","))
}

// The server refuses a ledger that contradicts itself, by whomever it is written.
func TestServerChecksLedgers(t *testing.T) {
	s := serve(t, v1alpha1.DisruptionLedgerKind, v1alpha1.DisruptionLedgersResource)
	alone := sole{}
	const one = `,"count":1,"slots":[{"node":"a","uid":"u","rollout":"r","attempt":1`
	for _, c := range []struct{ name, spec, want string }{
		{"empty", ledger(0, ""), ""},
		{"full", ledger(9, `,"fence":9,"closures":[{"request":"x"}]`+slots("a 1", "b 9 Suspect")), ""},
		{"no epoch", `{}`, "epoch: Required value"},
		{"negative epoch", ledger(-1, ""), "greater than or equal to 0"},
		{"fence above epoch", ledger(1, `,"fence":2`), "fence must not be above epoch"},
		{"attempt above epoch", ledger(1, slots("a 2")), "must not be above epoch"},
		{"attempt 0", ledger(1, slots("a 0")), "greater than or equal to 1"},
		{"wrong count", ledger(1, `,"count":2,"slots":[{"node":"a","uid":"u","rollout":"r","attempt":1}]`), "count must be the number of slots"},
		{"no count", ledger(1, `,"slots":[{"node":"a","uid":"u","rollout":"r","attempt":1}]`), "count must be the number of slots"},
		{"uid twice", ledger(2, `,"count":2,"slots":[{"node":"a","uid":"u","rollout":"r","attempt":1},{"node":"b","uid":"u","rollout":"r","attempt":2}]`), "Duplicate value"},
		{"node twice", ledger(2, `,"count":2,"slots":[{"node":"a","uid":"u","rollout":"r","attempt":1},{"node":"a","uid":"v","rollout":"r","attempt":2}]`), "a node must have one slot at most"},
		{"attempt twice", ledger(2, slots("a 2", "b 2")), "an attempt must be of one slot"},
		{"no node", ledger(1, `,"count":1,"slots":[{"node":"","uid":"u","rollout":"r","attempt":1}]`), "at least 1 chars long"},
		{"no rollout", ledger(1, `,"count":1,"slots":[{"node":"a","uid":"u","attempt":1}]`), "rollout: Required value"},
		{"unknown state", ledger(1, slots("a 1 Lost")), "Unsupported value"},
		{"keys", ledger(1, one+`,"keys":["zone/a","class/x"]}]`), ""},
		{"empty key", ledger(1, one+`,"keys":[""]}]`), "at least 1 chars long"},
		{"key twice", ledger(1, one+`,"keys":["zone/a","zone/a"]}]`), "Duplicate value"},
		{"no request", ledger(0, `,"closures":[{"scope":"r"}]`), "request: Required value"},
		{"empty request", ledger(0, `,"closures":[{"request":""}]`), "at least 1 chars long"},
		{"too many slots", ledger(v1alpha1.MaxSlots+1, many(v1alpha1.MaxSlots+1)), "must have at most 1000 items"},
		{"as many as can be", ledger(v1alpha1.MaxSlots, many(v1alpha1.MaxSlots)), ""},
	} {
		t.Run(c.name, func(t *testing.T) { alone.judge(t, s.create("checked", c.spec, dryRun...), c.want) })
	}
	changes(t, s, alone)
	alone.each(t, v1alpha1.DisruptionLedgerKind)
}

// The server does not note the owner of each field of each slot: of a full ledger that would be half of the object, and of the time of each write.
func TestOwnersOfALedgerAreFew(t *testing.T) {
	s := serve(t, v1alpha1.DisruptionLedgerKind, v1alpha1.DisruptionLedgersResource)
	s.must(s.create("owned", ledger(v1alpha1.MaxSlots, many(v1alpha1.MaxSlots))))
	u, err := s.Get(deadline(t), "owned", metav1.GetOptions{})
	s.must(err)
	size := 0
	for _, m := range u.GetManagedFields() {
		if m.FieldsV1 != nil {
			size += len(m.FieldsV1.GetRawBytes())
		}
	}
	if n := len(u.GetManagedFields()); n != 1 || size > 256 {
		t.Errorf("%d managers own fields of the ledger, by %d bytes: want one, by 256 bytes or less", n, size)
	}
}

// many are slots of nodes with long names.
func many(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("ip-10-0-%d.eu-central-1.compute.internal.example.com %d", i, i+1))
	}
	return slots(all...)
}

// changes are what a ledger may become.
func changes(t *testing.T, s served, alone sole) {
	t.Helper()
	s.must(s.create("before", ledger(9, `,"fence":3,"closures":[{"request":"x"}]`+slots("a 4", "b 5 Broken", "c 9"))))
	for _, c := range []struct{ name, spec, want string }{
		{"closed", `"closures":[{"request":"x"},{"request":"y","scope":"r"}]`, ""},
		{"open", `"closures":null`, ""},
		{"epoch decreases", `"epoch":8,"count":0,"slots":null`, "epoch must not decrease"},
		{"epoch left out", `"epoch":null`, "epoch: Required value"},
		{"fence decreases", `"fence":2`, "fence must not decrease"},
		{"fence left out", `"fence":null`, "fence must not decrease"},
		{"released", `"epoch":9` + slots("b 5 Broken", "c 9"), ""},
		{"admitted", `"epoch":10` + slots("a 4", "b 5 Broken", "c 9", "d 10"), ""},
		{"retried", `"epoch":10` + slots("a 4", "b 10 Broken", "c 9"), ""},
		{"released and admitted", `"epoch":10` + slots("a 4", "c 9", "b 10"), ""},
		{"marked", `"epoch":9` + slots("a 4 Suspect", "b 5 Quarantined", "c 9"), ""},
		{"unmarked", `"epoch":9` + slots("a 4", "b 5", "c 9"), "the state of a slot only gets worse"},
		{"better", `"epoch":9` + slots("a 4", "b 5 Suspect", "c 9"), "the state of a slot only gets worse"},
		{"attempt decreases", `"epoch":9` + slots("a 3", "b 5 Broken", "c 9"), "the attempt of a slot must not decrease"},
		{"node renamed", `"epoch":9,"count":1,"slots":[{"node":"z","uid":"u-a","rollout":"r","attempt":4}]`, "node must not change"},
		{"rollout changes", `"epoch":9,"count":1,"slots":[{"node":"a","uid":"u-a","rollout":"s","attempt":4}]`, "rollout changes only together with a higher attempt"},
		{"retried for another one", `"epoch":10,"count":1,"slots":[{"node":"a","uid":"u-a","rollout":"s","attempt":10}]`, ""},
	} {
		t.Run("change/"+c.name, func(t *testing.T) { alone.judge(t, s.merge("before", `{"spec":{`+c.spec+`}}`, dryRun), c.want) })
	}
}
