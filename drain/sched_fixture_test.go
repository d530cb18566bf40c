// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sched is a Scheduler on a clock that the test moves, with one budget, and nothing drawn at random.
type sched struct {
	t      *testing.T
	s      *Scheduler
	clock  time.Time
	budget types.NamespacedName
}

func newSched(t *testing.T, o SchedulerOptions) *sched {
	t.Helper()
	f := &sched{t: t, clock: simStart, budget: types.NamespacedName{Namespace: "ns", Name: "web"}}
	o.Now = func() time.Time { return f.clock }
	s, err := NewScheduler(o)
	if err != nil {
		t.Fatal(err)
	}
	s.random = func() float64 { return 0 }
	f.s = s
	return f
}

func (f *sched) pass(d time.Duration) { f.clock = f.clock.Add(d) }

func (f *sched) pod(name string) PodRef {
	return PodRef{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}
}

// state is a state of the budget, with entries for pods.
func (f *sched) state(version string, allowed int32, entries map[string]time.Time) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{}
	b.Namespace, b.Name, b.UID, b.ResourceVersion = f.budget.Namespace, f.budget.Name, "uid", version
	b.Status.DisruptionsAllowed, b.Status.CurrentHealthy, b.Status.DesiredHealthy = allowed, 3+allowed, 3
	b.Status.DisruptedPods = map[string]metav1.Time{}
	for name, at := range entries {
		b.Status.DisruptedPods[name] = metav1.NewTime(at)
	}
	return b
}

// observe shows the scheduler a state of the budget with entries for these pods.
func (f *sched) observe(version string, allowed int32, pods ...string) {
	entries := map[string]time.Time{}
	for _, p := range pods {
		entries[p] = simStart
	}
	f.s.observe([]*policyv1.PodDisruptionBudget{f.state(version, allowed, entries)})
}

func (f *sched) want(node string, remaining, units int) {
	f.s.want(node, demand{remaining: remaining, since: simStart, budgets: map[types.NamespacedName]int{f.budget: units}})
}

func (f *sched) taken(node, pod string) *ticket {
	f.t.Helper()
	return f.got(f.s.take(node, f.pod(pod), f.budget))
}

func (f *sched) takenFree(node, pod string) *ticket {
	f.t.Helper()
	return f.got(f.s.take(node, f.pod(pod), types.NamespacedName{}))
}

func (f *sched) got(ticket *ticket, r *refusal) *ticket {
	f.t.Helper()
	if ticket == nil {
		f.t.Fatalf("got refused with %s (%s), want a ticket", r.reason, r.message)
	}
	return ticket
}

func (f *sched) refused(node, pod string, want Reason) *refusal {
	f.t.Helper()
	ticket, r := f.s.take(node, f.pod(pod), f.budget)
	return f.not(ticket, r, want)
}

func (f *sched) refusedFree(node, pod string, want Reason) *refusal {
	f.t.Helper()
	ticket, r := f.s.take(node, f.pod(pod), types.NamespacedName{})
	return f.not(ticket, r, want)
}

func (f *sched) not(ticket *ticket, r *refusal, want Reason) *refusal {
	f.t.Helper()
	if ticket != nil {
		f.t.Fatalf("got a ticket, want refused with %s", want)
	}
	if r.reason != want || r.after <= 0 || r.message == "" {
		f.t.Fatalf("got refused with %s for %v (%q), want %s with a time and a message", r.reason, r.after, r.message, want)
	}
	return r
}

// accepted evicts a pod.
func (f *sched) accepted(node, pod string) {
	f.t.Helper()
	f.taken(node, pod).done(Answer{Verdict: verdictAccepted})
}

func (f *sched) spent(want int) {
	f.t.Helper()
	if got := f.s.spent()[f.budget]; got != want {
		f.t.Fatalf("got %d spent, want %d", got, want)
	}
}
