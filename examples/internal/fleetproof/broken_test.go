// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// at makes an object one version of what lies in etcd.
func at(t *testing.T, in, name string, object any) version {
	t.Helper()
	text, err := json.Marshal(object)
	must(t, err)
	return version{Key: in + name, Value: text}
}

// A word is one version of an object, made when a test runs.
type word func(t *testing.T) version

// ledgerOf has slots: nodes with their attempts.
func ledgerOf(epoch protocol.Attempt, closed string, slots ...protocol.Slot) word {
	l := protocol.Ledger{Epoch: epoch, Slots: slots}
	if closed != "" {
		l = l.Close(protocol.Closure{Scope: closed, Request: "detector"})
	}
	return func(t *testing.T) version {
		return at(t, ledgersIn, "fleet", v1alpha1.DisruptionLedger{Spec: v1alpha1.LedgerSpecOf(l)})
	}
}

func slotOf(node string, attempt protocol.Attempt) protocol.Slot {
	return protocol.Slot{Node: node, UID: node, Attempt: attempt, Rollout: "r"}
}

func nodeOf(name string, cordoned bool) word {
	n := corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	n.Spec.Unschedulable = cordoned
	return func(t *testing.T) version { return at(t, nodesIn, name, n) }
}

// shadowOf is that of node a, which was told what an attempt in this phase has to be told.
func shadowOf(attempt protocol.Attempt, phase protocol.Phase, revision string) word {
	o := protocol.Orders{Grant: attempt, Revision: revision}
	switch phase {
	case protocol.PhaseUndone:
		o.Undo = attempt
	case protocol.PhaseApplying, protocol.PhaseVerifying, protocol.PhaseDone, protocol.PhaseFailedClean, protocol.PhaseFailedBroken:
		o.Proceed = attempt
	}
	return shadowWith(o, protocol.Report{Known: true, Attempt: attempt, Phase: phase, Revision: revision})
}

func shadowWith(o protocol.Orders, r protocol.Report) word {
	sh := v1alpha1.NodeShadow{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.NodeShadowSpec{NodeUID: "a"}}
	sh.Spec.SetOrders(o)
	sh.Status.SetReport(r)
	return func(t *testing.T) version { return at(t, shadowsIn, "a", sh) }
}

func rolloutOf(acknowledged bool) word {
	r := v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "fleet", UID: "r"}, Status: v1alpha1.RolloutStatus{Acknowledged: acknowledged}}
	return func(t *testing.T) version { return at(t, rolloutsIn, "fleet", r) }
}

func gone(key string) word { return func(*testing.T) version { return version{Key: key} } }

// A history is what the auditor sees, and what it has to find in it: "" for nothing.
type history struct {
	name  string
	words []word
	want  string
}

func check(t *testing.T, histories []history) {
	t.Helper()
	for _, c := range histories {
		t.Run(c.name, func(t *testing.T) {
			a := newAuditor(2)
			for _, w := range c.words {
				a.see(w(t))
			}
			wrong, versions, _, _, _ := a.report()
			if len(wrong) > 1 || (c.want == "") != (len(wrong) == 0) || !strings.Contains(strings.Join(wrong, ""), c.want) || versions != len(c.words) {
				t.Errorf("got %q after %d versions, want %q alone", wrong, versions, c.want)
			}
		})
	}
}

// The auditor finds each kind of what it looks for in one object alone, and nothing in a history that is sound.
func TestAuditorFindsWhatIsWrong(t *testing.T) {
	check(t, []history{
		{"too many slots", []word{ledgerOf(3, "", slotOf("a", 1), slotOf("b", 2), slotOf("c", 3))}, "E21: the ledger at 0 has 3 slots"},
		{"too many cordoned", []word{nodeOf("a", true), nodeOf("b", true), nodeOf("c", true)}, "E21: 3 nodes are cordoned"},
		{"one of them gone", []word{nodeOf("a", true), nodeOf("b", true), gone(nodesIn + "a"), nodeOf("c", true)}, ""},
		{"ledger goes back", []word{ledgerOf(2, ""), ledgerOf(1, "")}, "I3: the ledger at 0 goes back"},
		{"ledger gone", []word{ledgerOf(2, ""), gone(ledgersIn + "fleet")}, "the ledger was deleted"},
		{"attempt goes back", []word{shadowOf(2, "Done", "v2"), shadowOf(1, "Done", "v1")}, "I3: the shadow of a"},
		{"begun again", []word{shadowOf(1, "Committed", "v2"), shadowOf(1, "Done", "v2"), shadowOf(2, "Committed", "v2")}, "E25: node a begins v2"},
		{"undone before", []word{shadowOf(1, "Committed", "v2"), shadowOf(1, "Undone", "v2"), shadowOf(2, "Committed", "v2")}, ""},
		{"refused before", []word{shadowOf(1, "Refused", "v2"), shadowOf(2, "Committed", "v2")}, ""},
		{"unreadable", []word{func(*testing.T) version { return version{Key: ledgersIn + "fleet", Value: []byte("{")} }}, "can't be read"},
	})
}

// The auditor finds what is wrong between objects: a node without its slot, a slot that goes too early, a closed ledger that admits, a node that was not told.
func TestAuditorFindsWhatIsWrongBetweenObjects(t *testing.T) {
	here, slot, free := nodeOf("a", false), ledgerOf(1, "", slotOf("a", 1)), ledgerOf(1, "")
	untold := func(phase protocol.Phase, broken bool) word {
		return shadowWith(protocol.Orders{Grant: 1}, protocol.Report{Known: true, Attempt: 1, Phase: phase, Revision: "v2", Broken: broken})
	}
	revoked := shadowWith(protocol.Orders{Grant: 1, Revoked: 1}, protocol.Report{Known: true})
	undoneBroken := shadowWith(protocol.Orders{Grant: 1, Undo: 1}, protocol.Report{Known: true, Attempt: 1, Phase: "FailedBroken", Revision: "v2", Broken: true})
	check(t, []history{
		{"sound", []word{here, slot, shadowOf(1, "", ""), shadowOf(1, "Committed", "v2"), nodeOf("a", true), shadowOf(1, "Applying", "v2"), shadowOf(1, "Done", "v2"), free, here}, ""},
		{"retried", []word{here, slot, shadowOf(1, "FailedBroken", "v2"), ledgerOf(2, "", slotOf("a", 2)), shadowOf(1, "FailedBroken", "v2"), shadowOf(2, "Committed", "v3")}, ""},
		{"granted without a slot", []word{here, shadowWith(protocol.Orders{Grant: 1}, protocol.Report{Known: true})}, "E21: node a is granted attempt 1"},
		{"commits without a slot", []word{here, shadowOf(0, "", ""), slot, shadowWith(protocol.Orders{Grant: 1}, protocol.Report{Known: true}),
			ledgerOf(2, "", slotOf("a", 2)), shadowOf(1, "Committed", "v2")}, "E21: node a commits attempt 1"},
		{"disrupted without a slot", []word{shadowOf(1, "Committed", "v2"), here, shadowOf(1, "Applying", "v2")}, "E21: node a is Applying"},
		{"freed while disrupted", []word{here, slot, shadowOf(1, "Committed", "v2"), free}, "I1: the ledger at 0 frees"},
		{"freed before it can't commit", []word{here, slot, shadowWith(protocol.Orders{Grant: 1}, protocol.Report{Known: true}), free}, "I1: the ledger at 0 frees"},
		{"freed without a shadow", []word{here, slot, free}, "I1: the ledger at 0 frees"},
		{"freed when revoked", []word{here, slot, revoked, free}, ""},
		{"freed when gone", []word{here, slot, shadowOf(1, "Committed", "v2"), gone(nodesIn + "a"), free, shadowOf(1, "Committed", "v2")}, ""},
		{"freed for another of its name", []word{here, slot, shadowOf(1, "Committed", "v2"), gone(nodesIn + "a"), gone(shadowsIn + "a"), nodeOf("a", false)}, ""},
		{"applies untold", []word{untold("Applying", false)}, "E16: node a is Applying"},
		{"done untold", []word{untold("Done", false)}, "E16: node a is Done"},
		{"fails untold", []word{untold("FailedBroken", true)}, "E16: node a is FailedBroken"},
		{"gives up untold", []word{untold("Undone", false)}, "E16: node a is Undone"},
		{"broken before and undone", []word{undoneBroken}, ""},
		{"admits while closed", []word{ledgerOf(1, "r"), ledgerOf(2, "r", slotOf("a", 2))}, "E23: the ledger at 0 admits"},
		{"all closed", []word{ledgerOf(1, "r", slotOf("a", 1)), ledgerOf(2, "r", slotOf("a", 2))}, "E23: the ledger at 0 admits"},
		{"another is closed", []word{ledgerOf(1, "other"), ledgerOf(2, "other", slotOf("a", 2))}, ""},
		{"opened and admits", []word{ledgerOf(1, "r"), ledgerOf(2, "", slotOf("a", 2))}, ""},
		{"commits after it is stopped", []word{here, ledgerOf(1, "r", slotOf("a", 1)), shadowWith(protocol.Orders{Grant: 1}, protocol.Report{Known: true}),
			rolloutOf(true), shadowOf(1, "Committed", "v2")}, "E23: node a commits attempt 1"},
		{"commits before it is stopped", []word{here, ledgerOf(1, "r", slotOf("a", 1)), rolloutOf(false), shadowOf(1, "Committed", "v2")}, ""},
		{"opened after it was stopped", []word{here, ledgerOf(0, "r"), rolloutOf(true), slot, shadowOf(1, "Committed", "v2")}, ""},
	})
}

// What the processes of nodes are started with is looked at: E12, E15.
func TestHistoriesOfNodes(t *testing.T) {
	for want, all := range map[string][][][]string{
		"": {
			{{"", "good-1", "fatal-2", "fatal-2", "good-1", "fatal-2", "fatal-2", "good-1", "good-3"}}, {{"", "good-1", "fatal-2", "good-3"}}, {{}, {"", "good-1"}},
			{{"", "good-1", "fatal-2", "fatal-2"}, {"fatal-2", "good-1", "fatal-2", "fatal-2", "good-1"}, {"good-1"}}, {{"good-1", "good-2", "good-1", "good-2"}},
		},
		"E15": {{{"", "good-1", ""}}, {{"", "good-1"}, {""}}},
		"E12: it is started 5 times with fatal-2": {
			{{"good-1", "fatal-2", "fatal-2", "fatal-2", "good-1", "fatal-2", "fatal-2"}}, {{"fatal-2", "fatal-2", "fatal-2", "fatal-2", "fatal-2"}, {"good-1"}},
		},
		"E12: it is started with fatal-2 on 3 occasions": {
			{{"good-1", "fatal-2", "good-1", "fatal-2", "good-1", "fatal-2"}}, {{"fatal-2", "good-1", "fatal-2", "good-1"}, {"good-1", "fatal-2"}},
		},
	} {
		for _, lives := range all {
			got := ""
			if err := unsound(lives); err != nil {
				got = err.Error()
			}
			if (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("%q: got %q, want %q", lives, got, want)
			}
		}
	}
}

// A controller that has ended as none should is told from one that was killed.
func TestControllersThatEndAreTold(t *testing.T) {
	for _, c := range []struct {
		is     rolloutstage.End
		failed []string
		want   string
	}{
		{rolloutstage.End{Code: -1}, nil, ""},
		{rolloutstage.End{Itself: true, Code: 2, Output: "panic: runtime error"}, nil, "it has printed what no program should"},
		{rolloutstage.End{Code: -1, Output: "fatal error: all goroutines are asleep"}, nil, "it has printed what no program should"},
		{rolloutstage.End{Code: -1, Output: `E1 1:1.1 runtime.go:1] "Observed a panic" panic="x"`}, nil, "it has printed what no program should"},
		{rolloutstage.End{Code: -1, Output: "WARNING: DATA RACE"}, nil, "it has printed what no program should"},
		{rolloutstage.End{Itself: true}, nil, "it has ended by itself, exit code 0"},
		{rolloutstage.End{Itself: true, Code: 1}, []string{"no cache"}, `failures ["no cache"]`},
		{rolloutstage.End{Code: -1}, []string{"no cache"}, "it has failed"},
	} {
		if got := unfit(c.is, c.failed); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v, %q: got %q, want %q", c.is, c.failed, got, c.want)
		}
	}
}

// A soak that has not had one of its faults, a fatal config or a change of the leader proves nothing of it.
func TestFaultsThatWereNotHadAreTold(t *testing.T) {
	all := map[string]int{}
	for _, f := range faults() {
		all[f.name] = 1
	}
	if got := struck(all, 1, 2); got != "" {
		t.Errorf("all was had: got %q", got)
	}
	for name := range all {
		some := maps.Clone(all)
		delete(some, name)
		if got := struck(some, 1, 2); got != name {
			t.Errorf("without %q: got %q", name, got)
		}
	}
	if struck(all, 0, 2) == "" || struck(all, 1, 1) == "" {
		t.Errorf("no fatal config, or a handover too few: got nothing")
	}
}

// E18: a node that is still cordoned, held or marked was not given back.
func TestNodesThatAreKeptAreTold(t *testing.T) {
	for want, n := range map[string]corev1.Node{
		"":                               {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"other": "x"}}},
		"unschedulable true":             {Spec: corev1.NodeSpec{Unschedulable: true}},
		"held true":                      {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{controller.HeldAnnotation: "{}"}}},
		"marked for the autoscaler true": {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{controller.ScaleDownAnnotation: "true"}}},
	} {
		got := ""
		if err := kept(&n); err != nil {
			got = err.Error()
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%+v: got %q, want %q", n, got, want)
		}
	}
}

// A watch that is answered 410 counts, however the answer comes, and so does a list that was answered to its end; one that ends for another reason does not.
func TestAnswersAreTold(t *testing.T) {
	const added = `{"type":"ADDED","object":{"code":410}}` + "\n"
	const bookmark = `{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	failed := func(code string) string { return `{"type":"ERROR","object":{"kind":"Status","code":` + code + "}}\n" }
	type told struct{ expired, listed int64 }
	for _, c := range []struct {
		query, text string
		want        told
	}{
		{"?watch=true", added, told{}},
		{"?watch=true", added + failed("500"), told{}},
		{"?watch=true", added + failed("410"), told{expired: 1}},
		{"?watch=true", failed("410") + failed("410"), told{expired: 1}},
		{"?watch=true", "410", told{expired: 1}},
		{"?watch=true&sendInitialEvents=true", added, told{}},
		{"?watch=true&sendInitialEvents=true", added + bookmark + added, told{listed: 1}},
		{"?watch=true&sendInitialEvents=true", added + bookmark + failed("410"), told{1, 1}},
		{"", `{"items":[]}`, told{listed: 1}},
	} {
		for _, size := range []int{1, 7, 4096} {
			var got calls
			body := answer(t, got.over(new(says(c.text))), c.query)
			if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{body}, make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			if got := (told{got.expired.Load(), got.listed.Load()}); got != c.want {
				t.Errorf("%s: %q by %d bytes: got %+v, want %+v", c.query, c.text, size, got, c.want)
			}
		}
	}
}

// says answers with a text, or the code 410 if that is all.
type says string

// RoundTrip implements http.RoundTripper.
func (s *says) RoundTrip(*http.Request) (*http.Response, error) {
	code := http.StatusOK
	if *s == "410" {
		code = http.StatusGone
	}
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(string(*s)))}, nil
}

func answer(t *testing.T, agent http.RoundTripper, query string) io.Reader {
	t.Helper()
	response, err := agent.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/nodes"+query, nil))
	must(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response.Body
}

// A list that is cut off is no list.
func TestCutListsAreNotTold(t *testing.T) {
	var got calls
	if _, err := answer(t, got.over(new(says(`{"items":[]}`))), "").Read(make([]byte, 3)); err != nil || got.listed.Load() != 0 {
		t.Errorf("got %d lists and %v, want none", got.listed.Load(), err)
	}
}

// An agent that lists without having been told to by a 410 is told, with what came before it.
func TestListsWithoutACauseAreTold(t *testing.T) {
	const gone = `{"type":"ERROR","object":{"kind":"Status","code":410}}` + "\n"
	for _, c := range []struct {
		name string
		asks []string // "list", or what a watch brings
		want int
	}{
		{"the first list", []string{"list"}, 0},
		{"a list after a 410", []string{"list", "", gone, "list"}, 0},
		{"a list after a 410 by its code", []string{"list", "410", "list"}, 0},
		{"a list after a watch", []string{"list", gone, "list", "", "list"}, 1},
		{"two lists after one 410", []string{"list", gone, "list", "list"}, 1},
	} {
		var got calls
		var next says
		agent := got.over(&next)
		for _, text := range c.asks {
			query := "?watch=true"
			if text == "list" {
				query = ""
			}
			next = says(text)
			_, err := io.Copy(io.Discard, answer(t, agent, query))
			must(t, err)
		}
		if n := len(got.withoutCause()); n != c.want {
			t.Errorf("%s: got %d without a cause, want %d", c.name, n, c.want)
		}
	}
}

// What costs the API server a list counts as one.
func TestListsAreTold(t *testing.T) {
	for target, want := range map[string]string{
		"/apis/belay.dev/v1alpha1/nodeshadows?fieldSelector=metadata.name%3Da":   "list",
		"/apis/belay.dev/v1alpha1/nodeshadows?limit=500&resourceVersion=0":       "list",
		"/apis/belay.dev/v1alpha1/nodeshadows?watch=true&sendInitialEvents=true": "list",
		"/apis/belay.dev/v1alpha1/nodeshadows?watch=true&resourceVersion=7":      "watch",
		"/apis/belay.dev/v1alpha1/nodeshadows/a":                                 "",
		"/api/v1/nodes":                                                          "list",
		"/api/v1/nodes/a":                                                        "",
		"/api/v1/namespaces/belay-system/pods":                                   "list",
		"/api/v1/namespaces/belay-system/pods/a":                                 "",
		"/api/v1/namespaces":                                                     "list",
		"/readyz":                                                                "",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x"+target, nil)
		must(t, err)
		if got := whatIs(r); got != want {
			t.Errorf("GET %s: got %q, want %q", target, got, want)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://x/api/v1/nodes", nil)
	must(t, err)
	if got := whatIs(r); got != "" {
		t.Errorf("POST: got %q, want nothing", got)
	}
}
