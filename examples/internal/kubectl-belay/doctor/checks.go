// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A Lease is that by which a controller leads a domain.
type Lease struct {
	Domain, Namespace, Name string
	// Holder has it; empty for nobody. Renewed says that it was written while it was watched, for Watched.
	Holder  string
	Renewed bool
	Watched time.Duration
	Err     error
}

func controllers(s *Seen) []Finding {
	const check = "controller"
	remedy := "kubectl -n %s get pods and their logs: is the controller running, with --domains and --namespace as here?"
	var found []Finding
	for _, l := range s.Leases {
		help := fmt.Sprintf(remedy, l.Namespace)
		switch {
		case apierrors.IsNotFound(l.Err):
			found = append(found, finding(check, Problem, fmt.Sprintf("nobody leads domain %s: there is no Lease %s/%s", l.Domain, l.Namespace, l.Name), help))
		case l.Err != nil:
			found = append(found, finding(check, Unknown, fmt.Sprintf("the Lease %s/%s can't be read: %v", l.Namespace, l.Name, l.Err),
				"bind the Role belay-viewer in that namespace to you"))
		case l.Holder == "":
			found = append(found, finding(check, Problem, fmt.Sprintf("nobody leads domain %s: the Lease %s/%s has no holder", l.Domain, l.Namespace, l.Name), help))
		case !l.Renewed:
			found = append(found, finding(check, Problem, fmt.Sprintf("%s leads domain %s, and has not renewed its Lease %s/%s for %s",
				l.Holder, l.Domain, l.Namespace, l.Name, l.Watched.Round(time.Second)), help))
		default:
			found = append(found, Finding{Check: check, Level: OK, What: fmt.Sprintf("%s leads domain %s, and renews its Lease", l.Holder, l.Domain)})
		}
	}
	return orOK(found, check, "there is no rollout, and so none is needed")
}

func rollouts(s *Seen) []Finding {
	const check = "rollouts"
	found, ok := s.unseen(check, "Rollouts", "Revisions", "Nodes")
	if !ok {
		return found
	}
	for i := range s.Rollouts {
		r := &s.Rollouts[i]
		st := &r.Status
		if _, err := s.Decide(r); err != nil {
			found = append(found, finding(check, Problem, err.Error(), "kubectl edit rollout "+r.Name+": put that right"))
			continue
		}
		if st.ObservedGeneration != r.Generation {
			found = append(found, finding(check, Problem, fmt.Sprintf("rollout %s was changed, and its controller has not looked at that yet", r.Name),
				"if that stays so, see the check controller"))
		}
		if c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionStalled); c != nil && c.Status == "True" {
			found = append(found, finding(check, Problem, fmt.Sprintf("rollout %s needs somebody: %s: %s", r.Name, c.Reason, c.Message),
				"kubectl belay status "+r.Name))
		}
	}
	return orOK(found, check, fmt.Sprintf("%d, each can be decided on", len(s.Rollouts)))
}

// silent is how long an agent may take to speak for the first time, and to answer a grant if the rollout does not say.
const silent = 5 * time.Minute

func agents(s *Seen) []Finding {
	const check = "agents"
	found, ok := s.unseen(check, "NodeShadows", "Nodes", "Rollouts")
	if !ok {
		return found
	}
	var mute, orphans, strange, slow []string
	for i := range s.Shadows {
		sh := &s.Shadows[i]
		n := s.Node(sh.Name)
		switch {
		case n == nil:
			orphans = append(orphans, sh.Name)
		case string(n.UID) != sh.Spec.NodeUID:
			strange = append(strange, sh.Name)
		case !sh.Status.Known && s.Now.Sub(sh.CreationTimestamp.Time) > silent:
			mute = append(mute, sh.Name)
		}
	}
	for i := range s.Rollouts {
		slow = append(slow, unanswered(s, &s.Rollouts[i])...)
	}
	for _, f := range []struct {
		names        []string
		what, remedy string
	}{
		{mute, "the agent has never spoken", "is the agent running there, with rights on its own NodeShadow? See its log on the node"},
		{slow, "the agent does not answer what was granted", "is the agent running there? See its log on the node; the grant is taken back by itself"},
		{strange, "the NodeShadow is of an earlier Node of that name", "the controller removes it by itself; if it stays, see the check controller"},
		{orphans, "there is a NodeShadow, and no Node", "the controller removes it by itself; if it stays, see the check controller"},
	} {
		if len(f.names) > 0 {
			slices.Sort(f.names)
			found = append(found, finding(check, Problem, fmt.Sprintf("%s, for %s: %s", f.what, page.Nodes(int64(len(f.names))), some(slices.Compact(f.names))), f.remedy))
		}
	}
	return orOK(found, check, fmt.Sprintf("%d NodeShadows, each of a Node that is there, no agent is silent", len(s.Shadows)))
}

// unanswered are the nodes whose agent has not answered a grant in time.
func unanswered(s *Seen, r *v1alpha1.Rollout) []string {
	progress, err := v1alpha1.ProgressOf(r.Status)
	if err != nil {
		return nil // said by another check
	}
	within := silent
	if d := r.Spec.Deadlines; d != nil && d.Commit != nil {
		within = d.Commit.Duration
	}
	var slow []string
	for _, e := range progress.Nodes {
		if e.State == protocol.Granted && !e.Admitted.IsZero() && s.Now.Sub(e.Since) > within {
			slow = append(slow, e.Node)
		}
	}
	return slow
}

func ledgers(s *Seen) []Finding {
	const check = "ledgers"
	found, ok := s.unseen(check, "DisruptionLedgers", "Rollouts")
	if !ok {
		return found
	}
	for _, domain := range Domains(s.Rollouts) {
		l := s.Ledger(domain)
		if l == nil {
			found = append(found, finding(check, Problem, fmt.Sprintf("domain %s has no DisruptionLedger", domain),
				"the controller makes it at its first pass: see the check controller"))
			continue
		}
		for _, c := range l.Spec.Closures {
			if c.Scope == "" {
				found = append(found, finding(check, Problem, fmt.Sprintf("domain %s is closed as a whole by %s: %s", domain, c.Request, c.Reason),
					"nothing begins there until what is said has ended"))
			}
		}
	}
	return orOK(found, check, fmt.Sprintf("%d, readable and open", len(s.Ledgers)))
}

// Domains are those of rollouts, each once.
func Domains(rollouts []v1alpha1.Rollout) []string {
	var all []string
	for i := range rollouts {
		all = append(all, rollouts[i].Spec.Domain)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func slots(s *Seen) []Finding {
	const check = "slots"
	found, ok := s.unseen(check, "DisruptionLedgers", "Rollouts", "Nodes")
	if !ok {
		return found
	}
	total := 0
	for i := range s.Ledgers {
		l := &s.Ledgers[i]
		total += len(l.Spec.Slots)
		for j := range l.Spec.Slots {
			if f, stuck := slot(s, l.Name, &l.Spec.Slots[j]); stuck {
				found = append(found, f)
			}
		}
	}
	return orOK(found, check, fmt.Sprintf("%d in use, none is stuck", total))
}

// slot says whether a slot is stuck. One of somebody who is no rollout, and borrows from the ledger, is told by its state alone.
func slot(s *Seen, domain string, o *v1alpha1.Slot) (f Finding, stuck bool) {
	f = Finding{Check: "slots", Level: Problem}
	i := slices.IndexFunc(s.Rollouts, func(r v1alpha1.Rollout) bool { return string(r.UID) == o.Rollout })
	name := "ROLLOUT"
	if i >= 0 {
		name = s.Rollouts[i].Name
	}
	borrower, _, lent := protocol.Slot{Rollout: o.Rollout, Keys: o.Keys}.Borrower()
	switch n := s.Node(o.Node); {
	case o.State != "" && lent:
		f.What = fmt.Sprintf("a slot of domain %s that is lent to %s is %s", domain, borrower, o.State)
		f.Remedy = "mend or replace what it is lent to; whoever has borrowed it gives it back then"
		return f, true
	case o.State != "":
		f.What = fmt.Sprintf("node %s in domain %s is %s, and keeps its slot", o.Node, domain, o.State)
		f.Remedy = fmt.Sprintf("kubectl belay why %s; mend the node, or give its capacity up with \"kubectl belay acknowledge %s %s\"", o.Node, name, o.Node)
		return f, true
	case i >= 0 && (n == nil || string(n.UID) != o.UID):
		f.What = fmt.Sprintf("node %s in domain %s has a slot, and is gone", o.Node, domain)
		f.Remedy = "the controller frees it by itself; if it stays, see the check controller"
		return f, true
	case i >= 0:
		for _, said := range s.Rollouts[i].Status.Nodes {
			if said.Node == o.Node && (rollout.Reason(said.Reason) == rollout.ReasonBlocked || rollout.Reason(said.Reason) == rollout.ReasonDeadline) {
				f.What, f.Remedy = fmt.Sprintf("node %s has a slot and does not get on: %s", o.Node, said.Message), "kubectl belay why "+o.Node
				return f, true
			}
		}
	}
	return f, false
}

func budgets(s *Seen) []Finding {
	const check = "budgets"
	found, ok := s.unseen(check, "PodDisruptionBudgets", "Pods")
	if !ok {
		return found
	}
	for i := range s.Budgets {
		if what, remedy := never(&s.Budgets[i]); what != "" {
			found = append(found, finding(check, Problem, fmt.Sprintf("%s/%s %s", s.Budgets[i].Namespace, s.Budgets[i].Name, what), remedy))
		}
	}
	var twice []string
	for _, p := range s.Pods {
		n := 0
		for i := range s.Budgets {
			if view.Counts(&s.Budgets[i], p) {
				n++
			}
		}
		if n > 1 {
			twice = append(twice, p.Namespace+"/"+p.Name)
		}
	}
	if len(twice) > 0 {
		slices.Sort(twice)
		found = append(found, finding(check, Problem, fmt.Sprintf("%d pods are counted by more than one budget, and are never evicted: %s", len(twice), some(twice)),
			"change the selectors so that each pod has one budget"))
	}
	return orOK(found, check, fmt.Sprintf("%d, each can allow an eviction", len(s.Budgets)))
}

// never says why a budget can't ever allow an eviction, as it is; empty if it can.
func never(b *policyv1.PodDisruptionBudget) (what, remedy string) {
	st := &b.Status
	if c := meta.FindStatusCondition(st.Conditions, policyv1.DisruptionAllowedCondition); c != nil && c.Reason == policyv1.SyncFailedReason {
		return "can't be computed, and so allows nothing: " + c.Message, "give its pods a controller with a scale, or use minAvailable as a number"
	}
	if st.ObservedGeneration < b.Generation {
		return "has not been computed, and so allows nothing", "is kube-controller-manager running?"
	}
	if st.ExpectedPods > 0 && st.DesiredHealthy >= st.ExpectedPods {
		return fmt.Sprintf("wants %d of %d pods healthy, and so never allows an eviction", st.DesiredHealthy, st.ExpectedPods),
			"raise maxUnavailable, lower minAvailable, or run one more replica"
	}
	return "", ""
}
