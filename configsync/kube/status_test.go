// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/golden"
	"github.com/belayproject/belay/lkg"
)

// nodeConfig reads the NodeConfig of the node.
func (c *cluster) nodeConfig(t *testing.T) v1alpha1.NodeConfig {
	t.Helper()
	u, err := c.all.Resource(v1alpha1.NodeConfigsResource).Get(deadline(t), c.node, metav1.GetOptions{})
	must(t, err)
	var nc v1alpha1.NodeConfig
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &nc))
	return nc
}

// statusFull uses every field.
func statusFull() configsync.Status {
	s := statusOK(time.Unix(1770000000, 0))
	s.Assigned = lkg.Ref{Namespace: "ns", Name: "cm2", UID: "u2", ResourceVersion: "6", Key: "kubelet", Digest: "sha256:bb"}
	s.LastKnownGood = lkg.Ref{}
	s.Rejected = []lkg.BadEntry{{Ref: s.Assigned, Time: time.Unix(1770000001, 5), Reason: "failed to validate current (UID: u2)", Evidence: "maxPods: must be positive"}}
	s.Trial = &configsync.TrialStatus{
		Since: time.Unix(1770000002, 5), Needed: 10 * time.Minute, Healthy: 3*time.Minute + 59*time.Second,
		Counted: 1, Allowed: 3, Ignored: []string{"Reboot: the boot ID changed"}, Failing: []string{"healthz: connection refused"},
	}
	s.Error, s.Alarm = "it isn't there", "nothing is left"
	s.Condition = lkg.Condition{Status: lkg.StatusFalse, Message: "using last known good: (UID: u1)", Reason: "failed to validate current (UID: u2)"}
	return s
}

// TestStatusIsReported shows the whole status as the API server holds it, against a golden file; that the same report writes nothing;
// that what is gone is removed; and that neither the spec nor the conditions of others change (R-CS-61).
// L-CS-15.
func TestStatusIsReported(t *testing.T) {
	c := newCluster(t)
	must(t, c.assignNodeConfig(deadline(t), `{"configMapRef":{"namespace":"ns","name":"cm2","uid":"u2"}}`))
	foreign := `{"status":{"conditions":[{"type":"Foreign","status":"True","reason":"X","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	_, err := c.all.Resource(v1alpha1.NodeConfigsResource).Patch(deadline(t), c.node, types.MergePatchType, []byte(foreign), metav1.PatchOptions{}, "status")
	must(t, err)
	config, count := counted(c.agent)
	r, err := kube.NewStatusReporter(clientFor(t, config), c.node, kube.Options{Now: func() time.Time { return time.Unix(1770000100, 0) }})
	must(t, err)
	must(t, r.Report(deadline(t), statusFull()))
	must(t, r.Report(deadline(t), statusFull()))
	if got := count(http.MethodPatch); got != 1 {
		t.Errorf("%d writes for two equal reports, want 1", got)
	}
	got := c.nodeConfig(t)
	checkJSON(t, "status.json", got.Status)
	if got.Spec.Source == nil || got.Spec.Source.ConfigMapRef.Name != "cm2" || got.Generation != 1 {
		t.Errorf("the report changed the spec: %+v", got.Spec)
	}
	must(t, r.Report(deadline(t), statusOK(time.Time{})))
	got = c.nodeConfig(t)
	if s := got.Status; s.Error != "" || s.Alarm != "" || s.Trial != nil || s.Rejected != nil || len(s.Conditions) != 2 {
		t.Errorf("what is gone is still reported, or a condition of others is not: %+v", s)
	}
}

// checkJSON compares v, in JSON, with a file in testdata.
func checkJSON(t *testing.T, name string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	must(t, err)
	golden.Check(t, name, string(got)+"\n")
}

// TestReasonsAreWords covers R-CS-75 for the NodeConfig: each state has a status and a one-word reason, and the transition time moves with
// the status, the reason or the message.
func TestReasonsAreWords(t *testing.T) {
	local := configsync.Status{Condition: lkg.Condition{Status: lkg.StatusTrue, Message: "using current (init)", Reason: "because"}}
	trial := statusOK(time.Time{})
	trial.Trial = &configsync.TrialStatus{}
	bad := statusOK(time.Time{})
	bad.Condition.Status = lkg.StatusFalse
	alarm := bad
	alarm.Alarm = "look"
	now := time.Unix(1770000100, 0)
	var before v1alpha1.NodeConfigStatus
	for i, c := range []struct {
		s    configsync.Status
		want string
	}{
		{local, v1alpha1.ReasonUsingLocal}, {trial, v1alpha1.ReasonOnTrial}, {statusOK(time.Time{}), v1alpha1.ReasonUsingCurrent},
		{statusUnclear(time.Time{}), v1alpha1.ReasonDesiredUnclear}, {bad, v1alpha1.ReasonRejected}, {alarm, v1alpha1.ReasonAlarm},
	} {
		at := now.Add(time.Duration(i) * time.Hour)
		after := kube.StatusOf(c.s, before, at)
		got := after.Conditions[0]
		if got.Reason != c.want || got.Status != metav1.ConditionStatus(c.s.Condition.Status) || !got.LastTransitionTime.Time.Equal(at) {
			t.Errorf("got %+v, want the reason %q, the status %q, and a transition at %s", got, c.want, c.s.Condition.Status, at)
		}
		again := kube.StatusOf(c.s, after, at.Add(time.Minute)).Conditions[0]
		if !again.LastTransitionTime.Equal(&got.LastTransitionTime) {
			t.Errorf("%s: the transition time moved without a change", c.want)
		}
		before = after
	}
}

// TestLocalIsExplicit shows that the local config is named, never a gap.
func TestLocalIsExplicit(t *testing.T) {
	for _, local := range []string{"init", "default"} {
		s := kube.StatusOf(configsync.Status{Local: local}, v1alpha1.NodeConfigStatus{}, time.Now())
		for _, c := range []*v1alpha1.Config{s.Assigned, s.Active, s.LastKnownGood} {
			if c == nil || string(c.Local) != local || c.Display != "local ("+local+")" || c.ConfigMapRef != nil {
				t.Errorf("got %+v, want the local config %q", c, local)
			}
		}
	}
}

// TestLargestStatusIsAccepted shows that whatever a Syncer has to say fits what the API server accepts.
func TestLargestStatusIsAccepted(t *testing.T) {
	c := newCluster(t)
	must(t, c.assignNodeConfig(deadline(t), ""))
	long := strings.Repeat("ö", 10_000)
	s := statusFull()
	s.Error, s.Alarm, s.Condition.Reason = long, long, long
	s.Trial.Ignored, s.Trial.Failing = nil, nil
	for i := range 200 {
		s.Trial.Ignored = append(s.Trial.Ignored, fmt.Sprint(i, long))
		s.Trial.Failing = append(s.Trial.Failing, fmt.Sprint(i, long))
		s.Rejected = append(s.Rejected, lkg.BadEntry{Ref: s.Active, Time: time.Now(), Reason: long, Evidence: long})
	}
	r, err := kube.NewStatusReporter(c.client, c.node, kube.Options{})
	must(t, err)
	must(t, r.Report(deadline(t), s))
	if got := c.nodeConfig(t).Status.Trial.Ignored; len(got) != 16 || !strings.HasPrefix(got[15], "199") {
		t.Errorf("got %d starts, want the newest 16", len(got))
	}
	conditions, err := kube.NewNodeConditionReporter(c.client, c.node, kube.Options{})
	must(t, err)
	must(t, conditions.Report(deadline(t), s))
}

// TestDroppedFieldsAreNoticed covers C-09: an API server whose definition is older keeps a part of the report only, without an error of its
// own. The reporter says so.
// L-CS-09.
func TestDroppedFieldsAreNoticed(t *testing.T) {
	c := newCluster(t)
	body := fmt.Sprintf(`{"apiVersion":"belay.dev/v1alpha1","kind":"NodeConfig","metadata":{"name":%q,"uid":"u"}}`, c.node)
	r, err := kube.NewStatusReporter(clientFor(t, impostor(t, says(200, body))), c.node, kube.Options{})
	must(t, err)
	if err := r.Report(deadline(t), statusFull()); !errors.Is(err, kube.ErrDropped) {
		t.Errorf("got %v from a server that keeps nothing, want ErrDropped", err)
	}
	n, err := kube.NewNodeConditionReporter(clientFor(t, impostor(t, says(200, strings.Replace(body, "belay.dev/v1alpha1\",\"kind\":\"NodeConfig", "v1\",\"kind\":\"Node", 1)))), c.node, kube.Options{})
	must(t, err)
	if err := n.Report(deadline(t), statusFull()); !errors.Is(err, kube.ErrDropped) {
		t.Errorf("got %v from a server that keeps nothing, want ErrDropped", err)
	}
}

// TestReportMeetsAnotherWriter shows that a report never lands on an object that isn't the one that was compared: not after another
// write, and not on an object that was created again in between. It is tried again a few times, on what is there then.
func TestReportMeetsAnotherWriter(t *testing.T) {
	c := newCluster(t)
	must(t, c.assignNodeConfig(deadline(t), ""))
	meddle := func(once bool) (configsync.Reporter, func() int64) {
		config, count := counted(c.env.Config())
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch && (!once || count(http.MethodPatch) == 0) {
					must(t, c.all.Resource(v1alpha1.NodeConfigsResource).Delete(deadline(t), c.node, metav1.DeleteOptions{}))
					must(t, c.assignNodeConfig(deadline(t), ""))
				}
				return next.RoundTrip(r)
			})
		})
		r, err := kube.NewStatusReporter(clientFor(t, config), c.node, kube.Options{})
		must(t, err)
		return r, func() int64 { return count(http.MethodPatch) }
	}
	r, writes := meddle(false)
	if err := r.Report(deadline(t), statusOK(time.Time{})); !apierrors.IsConflict(err) || errors.Is(err, configsync.ErrUnreachable) {
		t.Errorf("got %v, want a conflict", err)
	}
	if got := c.nodeConfig(t).Status.Conditions; len(got) != 0 || writes() != 4 {
		t.Errorf("after %d writes the new object has the conditions %v, want none after 4", writes(), got)
	}
	r, writes = meddle(true)
	must(t, r.Report(deadline(t), statusOK(time.Time{})))
	if got := c.nodeConfig(t).Status.Conditions; len(got) != 1 || writes() != 2 {
		t.Errorf("after %d writes the object has the conditions %v, want one after 2", writes(), got)
	}
}
