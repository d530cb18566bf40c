// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kube/internal/matrix"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/lkg"
)

// faulty is a cluster with the two configs of the story that every faulted node goes through.
type faulty struct {
	*cluster
	good, bad matrix.Ref
}

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	f := &faulty{cluster: newCluster(t)}
	var err error
	f.good, err = f.Create(deadline(t), matrix.ConfigMap{Name: "good", Immutable: true, Brief: true, Payloads: map[string]matrix.Payload{matrix.Key: matrix.GoodA}})
	must(t, err)
	f.bad, err = f.Create(deadline(t), matrix.ConfigMap{Name: "bad", Immutable: true, Payloads: map[string]matrix.Payload{matrix.Key: matrix.Invalid}})
	must(t, err)
	return f
}

// told is what remains of a node's story: what the API server holds of it, but for times, and what its child was started with.
type told struct {
	Condition, Display, Error   string
	Active, Good, Wanted, Bad   string
	OnNode                      string
	Starts                      []string
	ObservedIsTheLastGeneration bool
}

func (c *cluster) told(ctx context.Context, n *liveNode) (told, error) {
	u, err := c.all.Resource(v1alpha1.NodeConfigsResource).Get(ctx, c.node, metav1.GetOptions{})
	if err != nil {
		return told{}, err
	}
	var nc v1alpha1.NodeConfig
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &nc); err != nil {
		return told{}, err
	}
	node, err := c.admin.CoreV1().Nodes().Get(ctx, c.node, metav1.GetOptions{})
	if err != nil {
		return told{}, err
	}
	s := nc.Status
	got := told{Error: s.Error, ObservedIsTheLastGeneration: s.ObservedGeneration == nc.Generation}
	for _, cond := range s.Conditions {
		got.Condition += fmt.Sprintf("%s=%s %s: %s", cond.Type, cond.Status, cond.Reason, cond.Message)
	}
	for _, cond := range node.Status.Conditions {
		if cond.Type == lkg.ConditionType {
			got.OnNode += fmt.Sprintf("%s %s: %s", cond.Status, cond.Reason, cond.Message)
		}
	}
	for to, from := range map[*string]any{&got.Active: s.Active, &got.Good: s.LastKnownGood, &got.Wanted: s.Assigned} {
		raw, err := json.Marshal(from)
		if err != nil {
			return told{}, err
		}
		*to = string(raw)
	}
	for _, r := range s.Rejected {
		got.Bad += r.Reason + " "
	}
	for _, r := range n.child.Starts() {
		got.Starts = append(got.Starts, string(c.using(r)))
	}
	return got, nil
}

// story takes a node of its own through a sync: the good config is adopted and promoted, then the bad one is refused. It returns what the API
// server holds in the end: when it is want, or when limit has passed; without a want, when the node and its reports agree.
func (f *faulty) story(t *testing.T, name string, w *wire, want *told, limit time.Duration) (got told, n *liveNode) {
	t.Helper()
	c := &cluster{env: f.env, admin: f.admin, all: f.all, namespace: f.namespace, made: f.made, node: name}
	_, err := f.env.CreateNode(deadline(t), c.node)
	must(t, err)
	config := f.env.Config()
	w.node, w.seen, w.given = c.node, map[string]int{}, map[string]bool{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { w.next = next; return w })
	c.client = clientFor(t, config)
	must(t, c.assignNodeConfig(deadline(t), f.good.Source()))
	o := kube.Options{Timeout: patience, RetryMax: 50 * time.Millisecond}
	source, err := kube.NewNodeConfigSource(c.client, c.node, o)
	must(t, err)
	condition, err := kube.NewNodeConditionReporter(c.client, c.node, o)
	must(t, err)
	fetcher, err := kube.NewConfigMapFetcher(c.client, o)
	must(t, err)
	n = c.liveWith(t, source, func(_ *liveNode, o *configsync.Options[entry]) { o.Fetcher = fetcher }, source.StatusReporter(), condition)
	eventually(t, "the good config", func() error {
		if s := n.report.Last(); s.LastKnownGood.UID != f.good.UID {
			return fmt.Errorf("last known good is %+v; %s", s.LastKnownGood, s.Error)
		}
		return nil
	})
	must(t, c.assignNodeConfig(deadline(t), f.bad.Source()))
	end := time.Now().Add(limit)
	ctx := deadline(t)
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		got, err = c.told(ctx, n)
		must(t, err)
		refused := n.report.Last().Condition.Status == lkg.StatusFalse
		agreed := strings.Contains(got.Condition, "=False ") && strings.HasPrefix(got.OnNode, "False ") && refused
		if want == nil && agreed || want != nil && got.String() == want.String() || time.Now().After(end) {
			tick.Stop()
			return got, n
		}
	}
}

// String has a line for each fact.
func (s told) String() string {
	return strings.Join([]string{
		"condition: " + s.Condition, "node: " + s.OnNode, "error: " + s.Error, "active: " + s.Active, "good: " + s.Good, "wanted: " + s.Wanted, "bad: " + s.Bad,
		"starts: " + strings.Join(s.Starts, ", "), fmt.Sprintf("observed: %t", s.ObservedIsTheLastGeneration),
	}, "\n")
}

// sampled says whether call k of the story goes wrong in way i: all do where BELAY_CONFIG_FAULTS is "all", as make config-proof sets it; else one in
// twelve, and each watch that drops.
func sampled(i, k int, way way, call string) bool {
	all := os.Getenv("BELAY_CONFIG_FAULTS") == "all"
	return all || (i+k)%12 == 0 || way.name == "dropped" && strings.HasPrefix(call, "WATCH")
}

// common are the calls that two syncs have in common: how often a node looks again depends on the machine.
func common(a, b *wire) []string {
	calls, _ := a.record()
	others, _ := b.record()
	return slices.DeleteFunc(calls, func(call string) bool { return !slices.Contains(others, call) })
}

// lacking names a kind of call without which the story is not whole.
func lacking(calls []string) string {
	for _, kind := range []string{
		"GET .*/nodeconfigs/NODE", "PATCH .*/nodeconfigs/NODE/status", "WATCH .*/nodeconfigs", "GET .*/configmaps/good", "GET .*/configmaps/bad",
		"GET .*/nodes/NODE", "PATCH .*/nodes/NODE/status",
	} {
		if !slices.ContainsFunc(calls, regexp.MustCompile("^"+kind+" #").MatchString) {
			return kind
		}
	}
	return ""
}

// tellings is how often a story is told at most until its call is made.
const tellings = 3

// meets tells the story with a call that goes wrong. How many calls of a kind a node makes depends on how fast the machine is, so that the call may not be
// made at all: the story is then told again, of a new node. It says whether the fault was met, and whether each story ended as it should.
func (f *faulty) meets(t *testing.T, name, call string, way way, want *told) (met, ended bool) {
	t.Helper()
	ended = true
	for telling := 1; telling <= tellings && ended && !met; telling++ {
		w := &wire{at: call, way: way}
		got, _ := f.story(t, fmt.Sprintf("%s-%d", name, telling), w, want, 30*time.Second)
		if got.String() != want.String() {
			ended = false
			t.Errorf("%s at %s: the end is\n%s\nwant\n%s", way.name, call, got, want)
		}
		if _, met = w.record(); !met {
			t.Logf("telling %d: no such call was made", telling)
		}
	}
	return met, ended
}

// TestEveryCallOfASyncMayFail: every call that a sync makes of the API server, as syncs without a fault have made them, goes wrong in each of eight
// ways. The end is the same: what the server holds of the node, which config is in use, which is good, which is bad and why, and what
// the child was started with. R-CS-04, R-CS-16, L-CS-17, L-CS-32.
func TestEveryCallOfASyncMayFail(t *testing.T) {
	f := newFaulty(t)
	plain := &wire{}
	want, _ := f.story(t, f.node+"-plain", plain, nil, time.Minute)
	if len(want.Starts) != 2 || want.Good != want.Active || want.Bad == "" || want.Wanted == want.Active {
		t.Fatalf("without a fault the story ends with %+v, want the good config in use and the bad one listed", want)
	}
	again := &wire{}
	if got, _ := f.story(t, f.node+"-again", again, &want, time.Minute); got.String() != want.String() {
		t.Fatalf("without a fault the story ends with\n%s\nand then with\n%s", want, got)
	}
	calls := common(plain, again)
	if missing := lacking(calls); len(calls) < 15 || missing != "" {
		t.Fatalf("syncs make the calls %q, want at least 15, and one of %q", calls, missing)
	}
	var ran, hit, other atomic.Int32
	t.Run("calls", func(t *testing.T) {
		for i, way := range ways() {
			for k, call := range calls {
				if !sampled(i, k, way, call) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s", way.name, call), func(t *testing.T) {
					t.Parallel()
					met, ended := f.meets(t, fmt.Sprintf("%s-%d-%d", f.node, i, k), call, way, &want)
					ran.Add(1)
					if met {
						hit.Add(1)
					}
					if !ended {
						other.Add(1)
					}
				})
			}
		}
	})
	t.Logf("fault config.calls: %d calls of a sync, 8 ways, %d of them run, %d met their fault, %d other ends", len(calls), ran.Load(), hit.Load(), other.Load())
	if hit.Load() < ran.Load()*7/10 {
		t.Errorf("of %d faults %d were met: the calls of a sync are not those that were counted", ran.Load(), hit.Load())
	}
}

// TestFaultsCatchBrokenClients: the story tells a node that takes a time-out of a write for success, and one that gives up a write after a conflict, from
// one that does not.
func TestFaultsCatchBrokenClients(t *testing.T) {
	f := newFaulty(t)
	plain := &wire{}
	want, _ := f.story(t, f.node+"-plain", plain, nil, time.Minute)
	calls, _ := plain.record()
	calls = slices.DeleteFunc(calls, func(call string) bool { return !strings.HasPrefix(call, http.MethodPatch) })
	for name, broken := range map[string]*wire{
		"takes a time-out for success": {believes: true, way: ways()[5]},
		"gives up after a conflict":    {quits: true, way: ways()[0]},
	} {
		t.Run(name, func(t *testing.T) {
			caught := errors.New("no call showed it")
			for k, call := range slices.Backward(calls) {
				w := &wire{believes: broken.believes, quits: broken.quits, way: broken.way, at: call}
				got, _ := f.story(t, fmt.Sprintf("%s-%t-%d", f.node, broken.quits, k), w, &want, 3*time.Second)
				if _, hit := w.record(); hit && got.String() != want.String() {
					t.Logf("caught at %s: %s", call, got)
					caught = nil
					break
				}
			}
			must(t, caught)
		})
	}
}
