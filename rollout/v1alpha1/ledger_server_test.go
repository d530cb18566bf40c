// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
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
	var lines []string
	for _, s := range all {
		f := append(strings.Fields(s), "")
		line := "node=" + f[0] + " uid=u-" + f[0] + " attempt=" + f[1] + " rollout=r"
		if f[2] != "" {
			line += " state=" + f[2]
		}
		lines = append(lines, line)
	}
	return lined(lines...)
}

// lined are slots as they are stored, and their number.
func lined(all ...string) string {
	text, _ := json.Marshal(all) // of strings
	return fmt.Sprintf(`,"count":%d,"slots":%s`, len(all), text)
}

// The server refuses a ledger that contradicts itself, by whomever it is written.
func TestServerChecksLedgers(t *testing.T) {
	s := serve(t, v1alpha1.DisruptionLedgerKind, v1alpha1.DisruptionLedgersResource)
	alone := sole{}
	const one, form = "node=a uid=u attempt=1 rollout=r", "spec.slots[0] in body should match"
	for _, c := range []struct{ name, spec, want string }{
		{"empty", ledger(0, ""), ""},
		{"full", ledger(9, `,"fence":9,"closures":[{"request":"x"}]`+slots("a 1", "b 9 Suspect")), ""},
		{"no epoch", `{}`, "epoch: Required value"},
		{"negative epoch", ledger(-1, ""), "greater than or equal to 0"},
		{"fence above epoch", ledger(1, `,"fence":2`), "fence must not be above epoch"},
		{"attempt above epoch", ledger(1, slots("a 2")), "must not be above epoch"},
		{"attempt above epoch in the middle", ledger(3, slots("a 2", "b 4", "c 1")), "must not be above epoch"},
		{"attempt 0", ledger(1, slots("a 0")), form},
		{"attempt -1", ledger(1, slots("a -1")), form},
		{"attempt without end", ledger(1, slots("a 12345678901234567890")), form},
		{"wrong count", ledger(1, `,"count":2,"slots":["`+one+`"]`), "count must be the number of slots"},
		{"no count", ledger(1, `,"slots":["`+one+`"]`), "count must be the number of slots"},
		{"uid twice", ledger(2, lined(one, "node=b uid=u attempt=2 rollout=r")), "a node, a UID and an attempt must have one slot at most"},
		{"node twice", ledger(2, lined(one, "node=a uid=v attempt=2 rollout=r")), "a node, a UID and an attempt must have one slot at most"},
		{"attempt twice", ledger(2, slots("a 2", "b 2")), "a node, a UID and an attempt must have one slot at most"},
		{"names that meet", ledger(2, lined("node=x uid=a attempt=1 rollout=r", "node=a uid=x attempt=2 rollout=r")), ""},
		{"no node", ledger(1, lined("node= uid=u attempt=1 rollout=r")), form},
		{"no rollout", ledger(1, lined("node=a uid=u attempt=1")), form},
		{"another order", ledger(1, lined("uid=u node=a attempt=1 rollout=r")), form},
		{"another field", ledger(1, lined(one+" max=3")), form},
		{"no slot", ledger(1, lined("a")), form},
		{"an object", ledger(1, `,"count":1,"slots":[{"node":"a","uid":"u","rollout":"r","attempt":1}]`), "must be of type string"},
		{"unknown state", ledger(1, slots("a 1 Lost")), form},
		{"keys", ledger(1, lined(one+" state=Broken keys=zone/a,class/x%20y")), ""},
		{"empty key", ledger(1, lined(one+" keys=zone/a,,zone/b")), form},
		{"too many keys", ledger(1, lined(one+" keys=a"+strings.Repeat(",a", 16))), form},
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
		owned, err := json.Marshal(m.FieldsV1)
		s.must(err)
		size += len(owned)
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
		{"retried for another one", `"epoch":10` + lined("node=a uid=u-a attempt=10 rollout=s"), ""},
	} {
		t.Run("change/"+c.name, func(t *testing.T) { alone.judge(t, s.merge("before", `{"spec":{`+c.spec+`}}`, dryRun), c.want) })
	}
}
