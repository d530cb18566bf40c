// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// A fleetDrain is two Drainers with one Scheduler, and two nodes for each.
type fleetDrain struct {
	*cluster
	user        string
	nodes       []string
	rate, burst int
	begun       time.Time
	runs        []*running
	sent        sendings
}

// Sendings are when evictions were sent, by the names of their pods.
type sendings struct {
	mu sync.Mutex
	at map[string][]time.Time
}

// A noting client notes when each eviction is sent.
type noting struct {
	drain.Client
	sent *sendings
}

func (n noting) Evict(ctx context.Context, pod drain.PodRef, grace *int64) error {
	n.sent.mu.Lock()
	n.sent.at[pod.Name] = append(n.sent.at[pod.Name], time.Now())
	n.sent.mu.Unlock()
	return n.Client.Evict(ctx, pod, grace)
}

// newFleetDrain makes the nodes with a number of pods on each.
func newFleetDrain(t *testing.T, pods, rate, burst int) *fleetDrain {
	t.Helper()
	f := &fleetDrain{cluster: newCluster(t), rate: rate, burst: burst, sent: sendings{at: map[string][]time.Time{}}}
	f.user = f.name + "-drainer"
	for i := range 4 {
		f.nodes = append(f.nodes, f.mustNode(t, fmt.Sprint(i), workRole).Name)
		for j := range pods {
			f.mustPod(t, fmt.Sprintf("pod-%d-%d", i, j), "plain", f.nodes[i])
		}
	}
	f.settled(t, 4*pods)
	return f
}

// drain starts both.
func (f *fleetDrain) drain(t *testing.T) {
	t.Helper()
	config := f.asDrainer(t, f.user)
	scheduler, err := drain.NewScheduler(drain.SchedulerOptions{Rate: float64(f.rate), Burst: f.burst})
	must(t, err)
	f.begun = time.Now()
	for i := range 2 {
		d := mustConnect(t, config, func(o *drain.Options, _ *kube.Cache, _ kubernetes.Interface) error {
			o.Scheduler, o.Client = scheduler, noting{o.Client, &f.sent}
			return nil
		})
		f.runs = append(f.runs, start(t, d, setOf(fmt.Sprintf("%s-%d", f.user, i), drain.Drain, f.nodes[2*i:2*i+2]...)))
	}
}

// drained waits for the end of both, and returns all evictions.
func (f *fleetDrain) drained(t *testing.T) []auditEvent {
	t.Helper()
	for _, run := range f.runs {
		st, err := run.wait(t)
		must(t, err)
		for _, n := range st.Nodes {
			if n.Outcome != drain.OutcomeDrained {
				t.Errorf("got %s, want the node drained", inJSON(n))
			}
		}
	}
	return asked(audited(t, f.user))
}

// asked picks the evictions, also those that the server has refused before it read them.
func asked(events []auditEvent) []auditEvent {
	return slices.DeleteFunc(slices.Clone(events), func(e auditEvent) bool { return !e.isEviction() })
}

// TestOneRateForTheWholeFleet counts, at the server, what two Drainers ask of it. R-DR-19
// Fails when evictions do not wait for the rate, and when each Drainer has a rate of its own.
func TestOneRateForTheWholeFleet(t *testing.T) {
	t.Parallel()
	f := newFleetDrain(t, 10, 10, 5)
	f.drain(t)
	all := f.drained(t)
	if len(all) != 40 {
		t.Errorf("%d evictions were asked for, want 40", len(all))
	}
	const late = 10 // of what comes within a second, some may have been let go before, and been delayed on a busy machine
	first := 0
	for i, e := range all {
		at := e.RequestReceivedTimestamp
		if most := float64(f.burst) + float64(f.rate)*at.Sub(f.begun).Seconds(); float64(i+1) > most {
			t.Fatalf("%s: is number %d after %s, want no more than %.1f", e, i+1, at.Sub(f.begun), most)
		}
		for at.Sub(all[first].RequestReceivedTimestamp) >= time.Second {
			first++
		}
		if n := i + 1 - first; n > f.burst+f.rate+late {
			t.Fatalf("%s: is number %d within a second, want %d", e, n, f.burst+f.rate)
		}
	}
}

// TestOverloadedServerIsAskedLessByTheWholeFleet has a server with one seat for evictions, which is taken, and then with many. R-DR-19
// Fails when a node goes on while another was told to wait, and when more than one eviction at a time tries whether the server has
// recovered. The server's own wish grows as the wait does, so that either is enough here.
func TestOverloadedServerIsAskedLessByTheWholeFleet(t *testing.T) {
	t.Parallel()
	f := newFleetDrain(t, 5, 20, 5)
	recovers := f.overload(t, f.user)
	f.drain(t)
	for _, run := range f.runs {
		run.reconciled(t, "each node says why it waits", func(s drain.SetStatus) bool {
			return len(s.Nodes) == 2 && overloaded(s.Nodes[0]) && overloaded(s.Nodes[1])
		})
	}
	eventually(t, "the server is asked a second time", func() error {
		events, err := readAudit(f.env.AuditLog(), f.user)
		if n := len(f.sent.rounds(asked(events))); err == nil && n < 2 {
			err = fmt.Errorf("it was asked in %d rounds", n)
		}
		return err
	})
	recovers()
	all := f.drained(t)
	parts := f.sent.rounds(all)
	if len(parts) < 3 {
		t.Fatalf("the server was asked in %d rounds, want three:%s", len(parts), describe(all))
	}
	for i, wait := range []time.Duration{time.Second, 2 * time.Second} {
		refused, next := parts[i][0], parts[i+1][0]
		if got := next.RequestReceivedTimestamp.Sub(refused.RequestReceivedTimestamp); got < wait || refused.ResponseStatus.Code != 429 {
			t.Errorf("%s: round %d follows after %s, want a refusal and %s", refused, i+2, got, wait)
		}
	}
	if first := len(parts[0]); first > f.burst+f.rate/2 || len(parts[1]) != 1 {
		t.Errorf("the first rounds have %d and %d evictions, want few and one:%s", first, len(parts[1]), describe(all))
	}
}

// overloaded reports whether every pod of a node waits for the server.
func overloaded(n drain.Status) bool {
	for _, b := range n.Blockers {
		if b.Reason != drain.ServerOverloaded {
			return false
		}
	}
	return len(n.Blockers) > 0
}

// rounds parts requests, which are in the order of their receipt, where nothing is sent for a while, which is less than the shortest wait. When a busy server
// receives what was sent before the wait says nothing of it. Within a round the order is that of the receipt.
func (s *sendings) rounds(all []auditEvent) (parts [][]auditEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	type sending struct {
		auditEvent
		at time.Time
	}
	var sorted []sending
	seen := map[string]int{}
	for _, e := range all { // a pod is asked for again only after the answer, so that its requests are received in the order in which they are sent
		name, at := e.ObjectRef.Name, e.RequestReceivedTimestamp
		if n := seen[name]; n < len(s.at[name]) { // or else it was sent by nobody who has noted it
			at = s.at[name][n]
		}
		sorted = append(sorted, sending{e, at})
		seen[name]++
	}
	slices.SortStableFunc(sorted, func(a, b sending) int { return a.at.Compare(b.at) })
	for i, e := range sorted {
		if i == 0 || e.at.Sub(sorted[i-1].at) > 700*time.Millisecond {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], e.auditEvent)
	}
	for _, part := range parts {
		sortByReceipt(part)
	}
	return parts
}

// overload leaves one seat of the server for the evictions of a user, and takes that, until the returned function is called.
func (c *cluster) overload(t *testing.T, user string) (end func()) {
	t.Helper()
	must(t, grant(t.Context(), c.api))
	sitter := c.env.User(t, c.name+"-sitter", drainers)
	flow := c.oneSeat(t, user, c.name+"-sitter")
	pod := c.mustPod(t, "sitter", "sitter", "", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{placeLabel: "nowhere"} }).Name
	eventually(t, "evictions have one seat", func() error {
		_, by, err := c.post(t.Context(), sitter, pod, strings.NewReader(dryRun))
		if err == nil && by != flow {
			err = fmt.Errorf("an eviction is served by flow %q, want %q", by, flow)
		}
		return err
	})
	leave := c.sit(t, sitter, pod)
	if code, _, err := c.post(t.Context(), sitter, pod, strings.NewReader(dryRun)); err != nil || code != http.StatusTooManyRequests {
		t.Fatalf("an eviction beside the one that has the seat is answered with %d (%v), want 429", code, err)
	}
	return func() {
		must(t, c.api.FlowcontrolV1().FlowSchemas().Delete(t.Context(), c.name, metav1.DeleteOptions{}))
		if err := leave(); !errors.Is(err, context.Canceled) {
			t.Errorf("the request that takes the seat ended with %v, want it to last", err)
		}
	}
}

// sit takes the seat until leave is called, with an eviction whose body does not end. The server asks for the body once the request has
// the seat, and a request that is sent before that may be served first.
func (c *cluster) sit(t *testing.T, sitter *rest.Config, pod string) (leave func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	taken, ended := make(chan struct{}), make(chan error, 1)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: func() { close(taken) }})
	body, _ := io.Pipe()
	go func() {
		code, _, err := c.post(ctx, sitter, pod, body)
		if err == nil {
			err = fmt.Errorf("the server answers with %d", code)
		}
		ended <- err
	}()
	select {
	case <-taken:
	case err := <-ended:
		t.Fatalf("the request that takes the seat ended with %v, want it to last", err)
	}
	return func() error { cancel(); return <-ended }
}

// dryRun is an eviction without effect.
const dryRun = `{"apiVersion":"policy/v1","kind":"Eviction","deleteOptions":{"dryRun":["All"]}}`

// post sends an eviction, and returns the code of the answer, and the UID of the flow schema that has served it.
func (c *cluster) post(ctx context.Context, config *rest.Config, pod string, body io.Reader) (code int, flow string, err error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, config.Host+"/api/v1/namespaces/"+c.namespace+"/pods/"+pod+"/eviction", body)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Expect", "100-continue") // says when the server begins to read, which is behind its queues; nothing waits for it
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	return response.StatusCode, response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID), response.Body.Close()
}

// oneSeat makes a priority level with one seat for the evictions of users, and returns the UID of its flow schema.
func (c *cluster) oneSeat(t *testing.T, users ...string) string {
	t.Helper()
	flows := c.api.FlowcontrolV1()
	_, err := flows.PriorityLevelConfigurations().Create(t.Context(), &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: c.name},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: ptr.To(int32(0)), BorrowingLimitPercent: ptr.To(int32(0)),
				LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	rule := flowcontrolv1.PolicyRulesWithSubjects{ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
		Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Namespaces: []string{c.namespace},
	}}}
	for _, user := range users {
		rule.Subjects = append(rule.Subjects, flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: user}})
	}
	flow, err := flows.FlowSchemas().Create(t.Context(), &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: c.name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: c.name}, MatchingPrecedence: 100,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{rule},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	return string(flow.UID)
}
