// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// counted counts the requests that go through a configuration.
func counted(config *rest.Config, n *atomic.Int32) *rest.Config {
	return through(config, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		n.Add(1)
		return next.RoundTrip(r)
	})
}

// TestNoRequestIsRepeated shows that an answer with Retry-After comes back at once, and was asked for once. R-DR-19.
func TestNoRequestIsRepeated(t *testing.T) {
	c := newCluster(t)
	pod := refTo(c.runs(t, "app", ""))
	c.guards(t, "guard", "app", func(s *policyv1.PodDisruptionBudgetStatus) { s.ObservedGeneration = 0 })
	var n atomic.Int32
	began := time.Now()
	err := newClient(t, counted(c.env.Config(), &n), kube.ClientOptions{}).Evict(t.Context(), pod, nil)
	if a := drain.Classify(err); a.Verdict != "BudgetStale" || a.RetryAfter != 10*time.Second {
		t.Errorf("got %+v, want a stale budget that asks for 10 s", a)
	}
	if took := time.Since(began); n.Load() != 1 || took > 8*time.Second {
		t.Errorf("got %d requests in %s, want 1 without a wait", n.Load(), took)
	}
}

// TestOverloadedServerIsAskedOnce shows the same of every other call, on a server that asks everybody to come back.
func TestOverloadedServerIsAskedOnce(t *testing.T) {
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Load() == 1 {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "later", http.StatusTooManyRequests)
		}
	}))
	t.Cleanup(s.Close)
	pod := drain.PodRef{Namespace: "ns", Name: "app", UID: "u"}
	for name, call := range callsOf(t.Context(), pod) {
		n.Store(0)
		err := call(newClient(t, counted(&rest.Config{Host: s.URL}, &n), kube.ClientOptions{}))
		if a := drain.Classify(err); a.Verdict != "Overloaded" || a.RetryAfter != time.Second || n.Load() != 1 {
			t.Errorf("%s: got %+v after %d requests, want an overload that asks for 1 s after 1", name, a, n.Load())
		}
	}
}

func callsOf(ctx context.Context, pod drain.PodRef) map[string]func(kube.Client) error {
	return map[string]func(kube.Client) error{
		"evict":        func(c kube.Client) error { return c.Evict(ctx, pod, nil) },
		"dry run":      func(c kube.Client) error { return c.DryRunEvict(ctx, pod) },
		"delete":       func(c kube.Client) error { return c.Delete(ctx, pod, nil) },
		"patch":        func(c kube.Client) error { _, err := c.PatchNode(ctx, "node-1", []byte(`{}`), false); return err },
		"patch status": func(c kube.Client) error { _, err := c.PatchNode(ctx, "node-1", []byte(`{}`), true); return err },
		"list":         func(c kube.Client) error { _, err := c.ListPods(ctx, "node-1"); return err },
	}
}

// TestSilenceEndsByTheDeadline shows that a server that never answers holds up no call for longer than its timeout.
func TestSilenceEndsByTheDeadline(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection is not noticed
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	pod := drain.PodRef{Namespace: "ns", Name: "app", UID: "u"}
	for name, call := range callsOf(t.Context(), pod) {
		err := call(newClient(t, &rest.Config{Host: s.URL}, kube.ClientOptions{Timeout: 100 * time.Millisecond}))
		if !errors.Is(err, context.DeadlineExceeded) || drain.Classify(err).Verdict != "Unknown" {
			t.Errorf("%s: got %v, want the deadline, and that nothing is known", name, err)
		}
	}
}

// TestOnlyTheMeantPodIsTouched shows that evictions and deletions carry the UID, and that none goes out without.
func TestOnlyTheMeantPodIsTouched(t *testing.T) {
	c := newCluster(t)
	pod := refTo(c.runs(t, "app", "elsewhere"))
	var n atomic.Int32
	client := newClient(t, counted(c.env.Config(), &n), kube.ClientOptions{})
	for _, uid := range []types.UID{"another", ""} {
		wrong := drain.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: uid}
		for name, err := range map[string]error{
			"evict": client.Evict(t.Context(), wrong, nil), "delete": client.Delete(t.Context(), wrong, nil), "dry run": client.DryRunEvict(t.Context(), wrong),
		} {
			if err == nil || !strings.Contains(err.Error(), pod.String()) || uid != "" && name != "dry run" && !apierrors.IsConflict(err) {
				t.Errorf("%s with UID %q: got %v, want a refusal that names the pod", name, uid, err)
			}
		}
	}
	if n.Load() != 3 {
		t.Errorf("got %d requests, want 3: none without a UID", n.Load())
	}
	if got, err := c.admin.CoreV1().Pods(c.namespace).Get(t.Context(), "app", metav1.GetOptions{}); err != nil || got.DeletionTimestamp != nil {
		t.Errorf("got %v, %v, want the pod as it was", got, err)
	}
	must(t, client.Delete(t.Context(), pod, ptr.To(int64(7))))
	got, err := c.admin.CoreV1().Pods(c.namespace).Get(t.Context(), "app", metav1.GetOptions{})
	must(t, err)
	if got.DeletionGracePeriodSeconds == nil || *got.DeletionGracePeriodSeconds != 7 {
		t.Errorf("got a grace period of %v, want 7", got.DeletionGracePeriodSeconds)
	}
}

// TestDryRunChangesNothing shows that asking costs the budget nothing.
func TestDryRunChangesNothing(t *testing.T) {
	c := newCluster(t)
	pod := refTo(c.runs(t, "app", ""))
	c.guards(t, "guard", "app", func(*policyv1.PodDisruptionBudgetStatus) {})
	client := newClient(t, c.env.Config(), kube.ClientOptions{})
	for range 2 {
		must(t, client.DryRunEvict(t.Context(), pod))
	}
	budget, err := c.admin.PolicyV1().PodDisruptionBudgets(c.namespace).Get(t.Context(), "guard", metav1.GetOptions{})
	must(t, err)
	if budget.Status.DisruptionsAllowed != 1 {
		t.Errorf("got %d allowed, want 1", budget.Status.DisruptionsAllowed)
	}
	must(t, client.Evict(t.Context(), pod, nil))
	if err := client.DryRunEvict(t.Context(), pod); drain.Classify(err).Verdict != "Gone" {
		t.Errorf("got %v, want no pod", err)
	}
}

// TestDryRunIsToldToAdmission shows that a dry run is one in the query, which the API server passes on to webhooks; it
// does not pass on the one in the body, so that a webhook would act.
func TestDryRunIsToldToAdmission(t *testing.T) {
	var queries []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(s.Close)
	client := newClient(t, &rest.Config{Host: s.URL}, kube.ClientOptions{})
	pod := drain.PodRef{Namespace: "ns", Name: "app", UID: "u"}
	_ = client.DryRunEvict(t.Context(), pod)
	_ = client.Evict(t.Context(), pod, nil)
	if want := []string{"dryRun=All", ""}; !slices.Equal(queries, want) {
		t.Errorf("got queries %q, want %q", queries, want)
	}
}

// TestNodePatches shows that a patch tests what it carries, and reaches the status only where it is meant to.
func TestNodePatches(t *testing.T) {
	c := newCluster(t)
	node, err := c.env.CreateNode(t.Context(), c.namespace)
	must(t, err)
	client := newClient(t, c.env.Config(), kube.ClientOptions{})
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"annotations":{"a":"b"}},"spec":{"unschedulable":true}}`, node.ResourceVersion)
	got, err := client.PatchNode(t.Context(), c.namespace, patch, false)
	must(t, err)
	ours := slices.ContainsFunc(got.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == "belay-drain" })
	if !got.Spec.Unschedulable || got.Annotations["a"] != "b" || !ours {
		t.Errorf("got %+v, want it cordoned, by %s", got, "belay-drain")
	}
	if _, err := client.PatchNode(t.Context(), c.namespace, patch, false); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), c.namespace) {
		t.Errorf("got %v, want a conflict that names the node", err)
	}
	got, err = client.PatchNode(t.Context(), c.namespace, []byte(`{"status":{"conditions":[{"type":"Drained","status":"True"}]},"spec":{"unschedulable":false}}`), true)
	must(t, err)
	if len(got.Status.Conditions) != 1 || !got.Spec.Unschedulable {
		t.Errorf("got %+v, want the condition, and the spec as it was", got)
	}
}

// TestPodsAreReadWhole shows that all pages are read, of this node, and with nothing that would let the server answer from a cache.
func TestPodsAreReadWhole(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Encode())
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		if q.Get("continue") == "" {
			list.Continue = "more"
		}
		list.Items = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "after " + q.Get("continue")}}}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	pods, err := newClient(t, &rest.Config{Host: s.URL}, kube.ClientOptions{}).ListPods(t.Context(), "node-1")
	must(t, err)
	if len(pods) != 2 || pods[0].Name != "after " || pods[1].Name != "after more" {
		t.Errorf("got %v, want the pods of two pages", pods)
	}
	want := []string{"fieldSelector=spec.nodeName%3Dnode-1&limit=500", "continue=more&fieldSelector=spec.nodeName%3Dnode-1&limit=500"}
	if len(asked) != 2 || asked[0] != want[0] || asked[1] != want[1] {
		t.Errorf("got %q, want %q", asked, want)
	}
}

// TestClientHasItsOwnLimits shows that the caller's limits, made for reads, don't slow evictions down, and that mistakes are named.
func TestClientHasItsOwnLimits(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	t.Cleanup(s.Close)
	config := &rest.Config{Host: s.URL, QPS: 0.001, Burst: 1, Timeout: time.Nanosecond}
	client := newClient(t, config, kube.ClientOptions{Timeout: 10 * time.Second})
	for range 3 {
		must(t, client.Evict(t.Context(), drain.PodRef{Namespace: "ns", Name: "app", UID: "u"}, nil))
	}
	if config.QPS != 0.001 || config.Timeout != time.Nanosecond {
		t.Errorf("the caller's configuration is %+v now", config)
	}
	for _, c := range []struct {
		config *rest.Config
		o      kube.ClientOptions
		want   string
	}{
		{nil, kube.ClientOptions{}, "drain/kube.NewClientForConfig: config is required ("},
		{config, kube.ClientOptions{Timeout: -1}, "must not be negative"},
		{config, kube.ClientOptions{QPS: -1}, "must not be negative"},
		{&rest.Config{Host: "://"}, kube.ClientOptions{}, "drain/kube.NewClientForConfig: "},
	} {
		if _, err := kube.NewClientForConfig(c.config, nil, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
