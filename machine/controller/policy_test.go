// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// plansAlone has plans, and no updates.
type plansAlone struct {
	provider.Provider
	provider.Planner
}

// Providers that can do less.
const (
	noUpdate   = "no Update"
	twoMethods = "two methods"
)

func (c policyCase) provider(w *world) provider.Provider {
	p := planner{cloud{w.cloud, w}, &provider.Plan{Method: c.method, Disrupts: true, Reason: "it says so"}, new(int)}
	switch c.can {
	case noUpdate:
		return plansAlone{p, p}
	case twoMethods:
		return provider.Minimal(onlyTwo{p.cloud})
	}
	return p
}

// A policyCase is a plan of a provider under some policies.
type policyCase struct {
	policies []machine.UpdatePolicy
	method   provider.Method
	can      string
	// approve is what the annotation has: "this" is the digest of the change.
	approve string
	// calls are those of the change; none means that nothing but the status is written. incarnation is what the machine has then.
	calls       string
	incarnation int64
	// failure and waits are what its status says, in part; empty is none.
	failure, waits string
}

// What is called for a change.
const (
	byUpdate  = "TakeSlot Drain Update"
	byReplace = "TakeSlot Drain Stop Delete Create"
	byDelete  = "TakeSlot Drain Delete Create"
)

func policyCases() []policyCase {
	type all = []machine.UpdatePolicy
	every := all{"", machine.ProviderDecides, machine.InPlaceOnly, machine.ReplaceOnly, machine.ManualUpdate}
	decides, manual := all{"", machine.ProviderDecides}, all{machine.ManualUpdate}
	const refused = `the change needs a replacement (it says so), which spec.updatePolicy InPlaceOnly refuses`
	const noWay = "the provider plans to update in place, and has no Update"
	return []policyCase{
		{policies: decides, method: provider.InPlace, calls: byUpdate, incarnation: 1},
		{policies: decides, method: provider.Replace, calls: byReplace, incarnation: 2},
		{policies: all{machine.InPlaceOnly}, method: provider.InPlace, calls: byUpdate, incarnation: 1},
		{policies: all{machine.InPlaceOnly}, method: provider.Replace, incarnation: 1, failure: refused},
		{policies: all{machine.ReplaceOnly}, method: provider.InPlace, calls: byReplace, incarnation: 2},
		{policies: all{machine.ReplaceOnly}, method: provider.Replace, calls: byReplace, incarnation: 2},
		{policies: manual, method: provider.InPlace, incarnation: 1, waits: "InPlace planned (it says so); it waits for the annotation machine.belay.dev/approve="},
		{policies: manual, method: provider.Replace, incarnation: 1, waits: "Replace planned (it says so); it waits for the annotation machine.belay.dev/approve="},
		{policies: manual, method: provider.InPlace, approve: "this", calls: byUpdate, incarnation: 1},
		{policies: manual, method: provider.Replace, approve: "this", calls: byReplace, incarnation: 2},
		{policies: manual, method: provider.Replace, approve: "0123456789abcdef", incarnation: 1, waits: "it waits for the annotation"},
		{policies: every, method: provider.Unsupported, approve: "this", incarnation: 1, failure: "the provider can't make the change: it says so"},
		{policies: every, method: "Sideways", approve: "this", incarnation: 1, failure: `the provider has planned "Sideways", which is none of InPlace, Replace, Unsupported, Nothing`},
		{policies: every, method: provider.Nothing, incarnation: 1},

		{policies: all{"", machine.ProviderDecides, machine.InPlaceOnly}, method: provider.InPlace, can: noUpdate, incarnation: 1, failure: noWay},
		{policies: manual, method: provider.InPlace, can: noUpdate, approve: "this", incarnation: 1, failure: noWay},
		{policies: all{machine.ReplaceOnly}, method: provider.InPlace, can: noUpdate, calls: byDelete, incarnation: 2},
		{policies: all{"", machine.ReplaceOnly}, can: twoMethods, calls: byDelete, incarnation: 2},
		{policies: all{machine.InPlaceOnly}, can: twoMethods, incarnation: 1, failure: "which spec.updatePolicy InPlaceOnly refuses"},
		{policies: manual, can: twoMethods, incarnation: 1, waits: "Replace planned (the provider has no updates in place)"},
	}
}

// R-MA-06 and R-MA-07: whether a change is made in place, by a replacement or not at all is the provider's plan, within the policy of the machine. What may not be
// replaced is not, and no plan that cannot be carried out becomes another one by itself: then nothing is touched, the machine goes on as it is, and says why.
func TestUpdatePolicy(t *testing.T) {
	step, done := raceshare.Step(t), 0
	for _, c := range policyCases() {
		for _, policy := range c.policies {
			if done++; done%step != 0 {
				continue
			}
			t.Run(strings.Join([]string{string(policy), string(c.method), c.can, c.approve}, "/"), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) { c.test(t, w, policy) })
			})
		}
	}
}

func (c policyCase) test(t *testing.T, w *world, policy machine.UpdatePolicy) {
	w.options.Provider = c.provider(w)
	w.start()
	m := worker("a")
	m.Spec.UpdatePolicy = policy
	w.store.Put(m)
	w.running(m.Key)
	begun := len(w.trace)
	w.image(m.Key, "b")
	w.store.Edit(m.Key, func(m *machine.Machine) {
		if m.Annotations = map[string]string{machine.ApproveAnnotation: c.approve}; c.approve == "this" {
			m.Annotations[machine.ApproveAnnotation] = m.Spec.Digest()
		}
	})
	w.goOn(m.Key, time.Hour)
	at, calls := w.live(m.Key), w.trace[begun:]
	if got := changing(calls); got != c.calls || at.Incarnation != c.incarnation {
		t.Errorf("R-MA-06: %q were called, and it has incarnation %d; want %q and %d", got, at.Incarnation, c.calls, c.incarnation)
	}
	if i := slices.IndexFunc(calls, func(call string) bool { return !reads[call] && call != "PutStatus" }); c.calls == "" && i >= 0 {
		t.Errorf("R-MA-06: nothing is to be touched, and %s was called", calls[i])
	}
	if made := c.failure == "" && c.waits == ""; at.Phase != machine.PhaseRunning || (at.Digest == at.Spec.Digest()) != made || made != (at.Update == nil) || at.Release != nil {
		t.Errorf("R-MA-06: it is %s, made as it is wanted: %v; update %+v, release %+v", at.Phase, at.Digest == at.Spec.Digest(), at.Update, at.Release)
	}
	c.said(t, at)
}

// said checks what is there for people.
func (c policyCase) said(t *testing.T, at machine.Machine) {
	t.Helper()
	if f := at.Failure; (f != nil) != (c.failure != "") || f != nil && (f.Reason != machine.ReasonUnsupportedChange || !strings.Contains(f.Message, c.failure)) {
		t.Errorf("R-MA-06: the failure is %+v, want %q", f, c.failure)
	}
	if want := c.failure + c.waits; !strings.Contains(at.Step.Blocker, want) || (at.Step.Blocker != "") != (want != "") {
		t.Errorf("R-MA-06: it waits for %q, want %q", at.Step.Blocker, want)
	}
}

// goOn reconciles for some time.
func (w *world) goOn(key machine.Key, d time.Duration) {
	for begun := time.Now(); time.Since(begun) < d; {
		<-time.After(min(max(w.pass(key), time.Second), time.Minute))
	}
}

// changing are the calls that a change consists of, in their order; one that is made again and again is one.
func changing(calls []string) string {
	var all []string
	counts := strings.Fields(byUpdate + " " + byReplace)
	for _, call := range calls {
		if slices.Contains(counts, call) && (len(all) == 0 || all[len(all)-1] != call) {
			all = append(all, call)
		}
	}
	return strings.Join(all, " ")
}

// R-MA-07: a change that waits for somebody shows the digest that he has to write; that is for this change alone, and the next one waits again.
func TestManualUpdateWaitsForItsDigest(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := worker("a")
		m.Spec.UpdatePolicy = machine.ManualUpdate
		w.store.Put(m)
		w.running(m.Key)
		waits := func(m machine.Machine, _ bool) bool {
			return strings.Contains(m.Step.Blocker, machine.ApproveAnnotation)
		}
		w.image(m.Key, "b")
		w.until(m.Key, "waiting", waits)
		w.goOn(m.Key, time.Minute)
		first := w.live(m.Key)
		if want := machine.ApproveAnnotation + "=" + first.Update.Digest; !strings.HasSuffix(first.Step.Blocker, want) || first.Update.Digest != first.Spec.Digest() {
			t.Fatalf("R-MA-07: it waits for %q, want %q", first.Step.Blocker, want)
		}
		w.store.Edit(m.Key, func(m *machine.Machine) {
			m.Annotations = map[string]string{machine.ApproveAnnotation: first.Update.Digest}
		})
		w.running(m.Key)
		w.image(m.Key, "c")
		w.until(m.Key, "waiting again", waits)
		w.goOn(m.Key, time.Hour)
		if at := w.live(m.Key); w.cloud.Calls()["Update"] != w.cloud.Polls+1 || at.Digest != first.Update.Digest {
			t.Errorf("R-MA-07: what was approved was another change, and it is at %+v", at.Step)
		}
		// Who asks for a replacement instead needs no approval of what is made in place.
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.UpdatePolicy = machine.ReplaceOnly })
		if at, _ := w.running(m.Key); at.Incarnation != 2 {
			t.Errorf("R-MA-07: it has incarnation %d", at.Incarnation)
		}
	})
}
