// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/lkg"
)

// statusOK is the status of a node that uses the wanted config since the given time.
func statusOK(started time.Time) configsync.Status {
	current := lkg.Ref{Namespace: "ns", Name: "cm", UID: "u1", ResourceVersion: "5", Key: "kubelet", Digest: "sha256:aa"}
	return configsync.Status{
		Assigned: current, Active: current, Local: "init", StartedAt: started, ObservedGeneration: 3,
		Condition: lkg.Condition{Status: lkg.StatusTrue, Message: "using current (UID: u1)", Reason: "all checks passed"},
	}
}

func statusUnclear(started time.Time) configsync.Status {
	s := statusOK(started)
	s.Error = "it isn't there"
	s.Condition = lkg.Condition{
		Status: lkg.StatusUnknown, Message: "using current (UID: u1)", Reason: "failed to sync, desired config unclear, cause: it isn't there",
	}
	return s
}

// counted counts the requests by method that a client of config makes.
func counted(config *rest.Config) (*rest.Config, func(method string) int64) {
	var gets, writes atomic.Int64
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				gets.Add(1)
			} else {
				writes.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	return config, func(method string) int64 {
		if method == http.MethodGet {
			return gets.Load()
		}
		return writes.Load()
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// clock is a wall clock that the test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// nodeReporter is a reporter of the agent, and what the Node holds.
type nodeReporter struct {
	*cluster
	*clock
	configsync.Reporter
	writes func() int64
}

func newNodeReporter(t *testing.T, c *cluster, at *clock) nodeReporter {
	t.Helper()
	config, count := counted(c.agent)
	r, err := kube.NewNodeConditionReporter(clientFor(t, config), c.node, kube.Options{Now: at.now})
	must(t, err)
	return nodeReporter{c, at, r, func() int64 { return count(http.MethodPatch) }}
}

// configOK returns the only condition of that type, and how many others there are.
func (r nodeReporter) configOK(t *testing.T) (corev1.NodeCondition, int) {
	t.Helper()
	node, err := r.admin.CoreV1().Nodes().Get(deadline(t), r.node, metav1.GetOptions{})
	must(t, err)
	var ours []corev1.NodeCondition
	for _, c := range node.Status.Conditions {
		if c.Type == lkg.ConditionType {
			ours = append(ours, c)
		}
	}
	if len(ours) != 1 {
		t.Fatalf("%d conditions of type %s, want one, ever (R-CS-70): %v", len(ours), lkg.ConditionType, node.Status.Conditions)
	}
	return ours[0], len(node.Status.Conditions) - 1
}

// TestNodeConditionOverItsLife covers R-CS-70/72/73/74: one entry; a report that changes nothing writes nothing; a start renews the
// heartbeat and leaves the transition time; another condition moves both.
func TestNodeConditionOverItsLife(t *testing.T) {
	c := newCluster(t)
	kubelet := `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`
	_, err := c.admin.CoreV1().Nodes().Patch(deadline(t), c.node, types.StrategicMergePatchType, []byte(kubelet), metav1.PatchOptions{}, "status")
	must(t, err)
	t0 := time.Date(2026, 3, 1, 12, 0, 0, 5e8, time.UTC)
	clock := &clock{}
	first, second := newNodeReporter(t, c, clock), newNodeReporter(t, c, clock)
	other := statusOK(t0)
	other.Condition.Reason = "other cause"
	for _, step := range []struct {
		name                  string
		by                    nodeReporter // a new one is a new process
		at                    time.Duration
		report                configsync.Status
		writes                int64
		heartbeat, transition time.Duration
	}{
		{"first report", first, 0, statusOK(t0), 1, 0, 0},
		{"nothing new", first, time.Minute, statusOK(t0), 0, 0, 0},
		{"the child was started again", first, 2 * time.Minute, statusOK(t0.Add(time.Minute)), 1, 2 * time.Minute, 0},
		{"nothing new again", first, 3 * time.Minute, statusOK(t0.Add(time.Minute)), 0, 2 * time.Minute, 0},
		{"a new process that says the same", second, 4 * time.Minute, statusOK(t0.Add(time.Minute)), 1, 4 * time.Minute, 0},
		{"another status", second, 5 * time.Minute, statusUnclear(t0.Add(time.Minute)), 1, 5 * time.Minute, 5 * time.Minute},
		{"another reason", second, 6 * time.Minute, other, 1, 6 * time.Minute, 6 * time.Minute},
		{"the clock stepped back at a start", second, -time.Hour, withStart(other, t0.Add(-time.Hour)), 1, -time.Hour, 6 * time.Minute},
	} {
		clock.at = t0.Add(step.at)
		before := step.by.writes()
		must(t, step.by.Report(deadline(t), step.report))
		if got := step.by.writes() - before; got != step.writes {
			t.Errorf("%s: %d writes, want %d", step.name, got, step.writes)
		}
		got, others := step.by.configOK(t)
		if others != 1 {
			t.Errorf("%s: %d other conditions, want the kubelet's one", step.name, others)
		}
		want := corev1.NodeCondition{
			Type: lkg.ConditionType, Status: corev1.ConditionStatus(step.report.Condition.Status),
			Reason: step.report.Condition.Reason, Message: step.report.Condition.Message,
			LastHeartbeatTime: wholeSeconds(t0.Add(step.heartbeat)), LastTransitionTime: wholeSeconds(t0.Add(step.transition)),
		}
		got.LastHeartbeatTime, got.LastTransitionTime = wholeSeconds(got.LastHeartbeatTime.Time), wholeSeconds(got.LastTransitionTime.Time)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v\nwant %+v", step.name, got, want)
		}
	}
}

func withStart(s configsync.Status, at time.Time) configsync.Status { s.StartedAt = at; return s }

func wholeSeconds(t time.Time) metav1.Time { return metav1.Time{Time: t.UTC().Truncate(time.Second)} }

// TestNodeConditionHoldsTheLiterals covers R-CS-76..80: the API server takes the texts of package lkg as they are.
func TestNodeConditionHoldsTheLiterals(t *testing.T) {
	c := newCluster(t)
	r := newNodeReporter(t, c, &clock{at: time.Now()})
	for _, want := range []lkg.Condition{
		{Status: lkg.StatusTrue, Message: "using current (UID: 0f-1)", Reason: "all checks passed"},
		{Status: lkg.StatusTrue, Message: "using current (init)", Reason: "current is set to the local default, and an init config was provided"},
		{Status: lkg.StatusTrue, Message: "using current (default)", Reason: "current is set to the local default, and no init config was provided"},
		{Status: lkg.StatusUnknown, Message: "using last-known-good (init)", Reason: "failed to sync, desired config unclear, cause: " +
			"invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil"},
		{Status: lkg.StatusFalse, Message: "using last known good: (UID: 0f-1)", Reason: "failed to validate current (UID: 0f-2)"},
	} {
		must(t, r.Report(deadline(t), configsync.Status{Condition: want}))
		got, _ := r.configOK(t)
		if (lkg.Condition{Status: lkg.Status(got.Status), Reason: got.Reason, Message: got.Message}) != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// TestNodeConditionIsOwnedAlone shows that the field manager owns its entry and nothing else, takes it from whoever wrote it before,
// and repairs what others did to it (C-17: the world is compared, not a memory of it).
// L-CS-17.
func TestNodeConditionIsOwnedAlone(t *testing.T) {
	c := newCluster(t)
	foreign := `{"status":{"conditions":[{"type":"ConfigOK","status":"False","reason":"foreign"}]}}`
	meddle := func() {
		_, err := c.admin.CoreV1().Nodes().Patch(deadline(t), c.node, types.StrategicMergePatchType, []byte(foreign), metav1.PatchOptions{}, "status")
		must(t, err)
	}
	meddle()
	r := newNodeReporter(t, c, &clock{at: time.Now()})
	for range 2 {
		must(t, r.Report(deadline(t), statusOK(time.Time{})))
		if got, _ := r.configOK(t); got.Reason != "all checks passed" {
			t.Errorf("got %+v, want the report of the node", got)
		}
		meddle()
	}
	must(t, r.Report(deadline(t), statusOK(time.Time{})))
	node, err := c.admin.CoreV1().Nodes().Get(deadline(t), c.node, metav1.GetOptions{})
	must(t, err)
	for _, m := range node.ManagedFields {
		owned, err := json.Marshal(m.FieldsV1)
		must(t, err)
		if m.Manager == kube.FieldManager && (m.Subresource != "status" || strings.Contains(string(owned), "Ready")) {
			t.Errorf("the field manager owns more than its condition: %s %s", m.Subresource, owned)
		}
	}
}

// TestReportErrors shows what a reporter says where it can't report, and that it never makes the object that it reports to.
func TestReportErrors(t *testing.T) {
	c := newCluster(t)
	stranger := clientFor(t, c.env.User(t, "stranger"))
	for name, build := range map[string]func(client *cluster, node string, asStranger bool) configsync.Reporter{
		"Node": func(c *cluster, node string, asStranger bool) configsync.Reporter {
			r, err := kube.NewNodeConditionReporter(pick(asStranger, stranger, c.all), node, kube.Options{})
			must(t, err)
			return r
		},
		"NodeConfig": func(c *cluster, node string, asStranger bool) configsync.Reporter {
			r, err := kube.NewStatusReporter(pick(asStranger, stranger, c.all), node, kube.Options{})
			must(t, err)
			return r
		},
	} {
		for range 2 {
			if err := build(c, "absent", false).Report(deadline(t), statusOK(time.Now())); !errors.Is(err, configsync.ErrMissing) ||
				!strings.Contains(err.Error(), name+` "absent"`) {
				t.Errorf("%s: got %v, want that it doesn't exist", name, err)
			}
		}
		if err := build(c, c.node, true).Report(deadline(t), statusOK(time.Now())); !errors.Is(err, configsync.ErrForbidden) {
			t.Errorf("%s: got %v, want it forbidden", name, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := build(c, c.node, false).Report(ctx, statusOK(time.Now())); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want it to end with its context", name, err)
		}
		if err := build(c, c.node, false).Report(deadline(t), configsync.Status{}); err == nil || !strings.Contains(err.Error(), "no condition yet") {
			t.Errorf("%s: got %v for a status that was never filled in, want an error", name, err)
		}
	}
}

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}
