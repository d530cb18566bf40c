// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/internal/controller/metrics"
	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A vocabulary is which series there are: the values of each label of each metric. A label whose values are names has none.
type vocabulary map[string]map[string][]string

// targetLabels are those that Prometheus gives to every series of a pod that a ServiceMonitor has found.
var targetLabels = []string{"job", "pod", "instance", "namespace", "service", "endpoint", "container"}

// names are labels whose values are given by people.
var names = []string{"domain", "rollout", "from_revision", "to_revision", "name", "code", "method", "le"}

// exported is what the controller exports once all has happened that its packages can tell of.
func exported(t testing.TB) vocabulary {
	t.Helper()
	set := metrics.New()
	set.Leads("rollout-default", true)
	request(t, set)
	d := set.Drain()
	d.Pass(time.Second)
	for _, p := range []drain.Phase{
		drain.Pending, drain.Cordoned, drain.Draining, drain.Paused, drain.Settling, drain.Drained, drain.Holding, drain.HoldEnded, drain.Soak, drain.Released, drain.Failed,
	} {
		d.Phase("", p)
	}
	for _, v := range []drain.Verdict{
		"Accepted", "Gone", "Replaced", "BudgetExhausted", "BudgetStale", "BudgetContended",
		"MultipleBudgets", "NamespaceTerminating", "AdmissionDenied", "Forbidden", "Overloaded",
		"Unknown", "Rejected",
	} {
		d.Eviction(v, http.StatusOK, time.Second)
	}
	r, _ := set.Rollouts("default")
	r.Pass(time.Second, errors.New("an error"))
	for _, result := range []rollout.Result{
		rollout.Succeeded, rollout.Refused, rollout.Deferred, rollout.Undone, rollout.FailedClean, rollout.FailedBroken, rollout.Suspected, rollout.Lost, rollout.FellBack,
	} {
		r.Update("v1", "v2", result)
	}
	r.Transition(protocol.Resting, protocol.Admitted, "v1", "v2")
	waiting := map[rollout.Reason]int{}
	for _, reason := range []rollout.Reason{
		"LaterStage", "Gate", rollout.ReasonApproval, "Soak", "WindowClosed", "Cap", "OneAtATime",
		"Quorum", rollout.ReasonUnhealthy, rollout.ReasonAway, rollout.ReasonNoAgent, rollout.ReasonBackOff, rollout.ReasonGivenUp,
		"FailingRevision", rollout.ReasonStranded, rollout.ReasonPaused, "Frozen", "Aborted", rollout.ReasonBound, rollout.ReasonCheck,
	} {
		waiting[reason] = 1
	}
	for _, phase := range rollout.Phases() {
		r.Rollout(string(phase), phase, rollout.Counts{}, waiting)
	}
	for _, reason := range []rollout.Reason{v1alpha1.ReasonPausedTooLong, "Frozen", rollout.ReasonApproval, rollout.ReasonStranded, rollout.ReasonBlocked} {
		r.Stalled(string(reason), string(reason))
	}
	countParts(set)
	return scraped(t, set.Handler())
}

// request has a request counted.
func request(t testing.TB, set *metrics.Set) {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	must(t, err)
	answer, err := set.Requests(http.DefaultTransport).RoundTrip(r)
	must(t, err)
	must(t, answer.Body.Close())
}

// countParts has counted what the parts of the controller can tell of that are off unless asked for.
func countParts(set *metrics.Set) {
	m, _ := set.Machines()
	m.Orphans(1)
	m.Step(machine.StepPending, machine.StepCreating)
	for _, class := range []provider.Class{
		"", provider.InvalidConfig, provider.Unauthorized, provider.Stockout, provider.RateLimited, provider.Conflict, provider.Unavailable, provider.NotSupported,
		provider.NotFound, provider.Internal,
	} {
		m.Call(machine.Create, class, time.Second)
	}
	states := map[string]int{}
	for _, state := range []identity.State{identity.Unconfirmed, identity.Alive, identity.Suspect, identity.Lost} {
		states[string(state)] = 1
	}
	collected := set.Agents(func() *metrics.Census { return &metrics.Census{States: states, Fresh: true} })
	for _, outcome := range []identity.CollectOutcome{
		identity.Collected, identity.Finalizing, identity.WouldCollect, identity.Renewed, identity.Gone, identity.Refused,
	} {
		collected.Collected(outcome)
	}
	set.Configs(func() map[string]int { return map[string]int{"True": 1, "False": 1, "Unknown": 1, "Absent": 1} })
}

var (
	series = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? `)
	label  = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
)

// scraped is what a page of metrics says.
func scraped(t testing.TB, page http.Handler) vocabulary {
	t.Helper()
	answer := httptest.NewRecorder()
	page.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	all := vocabulary{"up": {}}
	for line := range strings.Lines(answer.Body.String()) {
		m := series.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if all[m[1]] == nil {
			all[m[1]] = map[string][]string{}
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			values := all[m[1]][l[1]]
			if !slices.Contains(names, l[1]) && !slices.Contains(values, l[2]) {
				values = append(values, l[2])
			}
			all[m[1]][l[1]] = values
		}
	}
	return all
}

// has reports whether series of a metric have a label.
func (v vocabulary) has(metric, name string) bool {
	_, own := v[metric][name]
	// What is recorded has the labels of a target where it groups by nothing: that is what a leader is known by.
	grouped := strings.Contains(metric, ":") && !slices.Contains(slices.Collect(maps.Keys(v[metric])), "name")
	return own || !grouped && slices.Contains(targetLabels, name)
}

// record adds what a rule records: the labels by which it groups, with the values that they have in what is grouped; those of the leaders' names if it does not.
func (v vocabulary) record(r alertRule) {
	grouped := []string{"domain", "name"}
	if by := clause.FindStringSubmatch(r.Expr); strings.HasPrefix(r.Expr, "sum") || strings.HasPrefix(r.Expr, "max") {
		grouped = nil
		if by != nil && by[1] == "by" {
			grouped = strings.Split(by[2], ", ")
		}
	}
	labels := map[string][]string{}
	for _, l := range grouped {
		labels[l] = nil
		for metric, has := range v {
			if strings.Contains(r.Expr, metric) && len(has[l]) > 0 {
				labels[l] = has[l]
			}
		}
	}
	v[r.Record] = labels
}

// metricNames are what is exported by this project, sorted.
func (v vocabulary) metricNames() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(v)), func(n string) bool { return !strings.HasPrefix(n, "belay_") })
}
