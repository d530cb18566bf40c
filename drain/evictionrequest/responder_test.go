// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/internal/evictionapi"
)

// own is the status of the default responder.
func own(e *evictionapi.Eviction) evictionapi.ResponderStatus {
	for _, r := range e.Status.Responders {
		if r.Name == evictionapi.ImperativeEvictor {
			return r
		}
	}
	return evictionapi.ResponderStatus{}
}

// A budget that allows nothing: the message of the default responder says so with the API server's words and a count,
// with a heartbeat, and the pod stays. After the budget is gone the next attempt evicts it.
func TestBudgetIsKept(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b == nil {
		return
	}
	one := intstr.FromInt32(1)
	budgets := b.core.PolicyV1().PodDisruptionBudgets(b.namespace)
	_, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}, metav1.CreateOptions{})
	b.must(err)
	pod := b.pod("web", nil)
	b.wait(func() error {
		budget, err := budgets.Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && budget.Status.ObservedGeneration == 0 {
			return errors.New("the budget has not been counted")
		}
		return err
	})
	b.run(b.env.Config(), true)
	b.request("a", "acme.io/a", pod)
	b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		status := own(e)
		if status.Message == nil || !strings.Contains(*status.Message, "number of retries: 1. BudgetExhausted") {
			return fmt.Errorf("the message is %v", status.Message)
		}
		if status.HeartbeatTime == nil || status.CompletionTime != nil {
			return fmt.Errorf("the status is %+v", status)
		}
		return nil
	})
	if b.isTerminating("web") == nil {
		t.Error("the pod was evicted against its budget")
	}
	b.must(budgets.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	b.wait(func() error { return b.isTerminating("web") })
	b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		if own(e).CompletionTime == nil {
			return errors.New("the responder has not completed")
		}
		return nil
	})
}

// A pod of a DaemonSet is not evicted through pods/eviction: its last responder says so, and the eviction has failed.
func TestDaemonSetPodIsNotEvicted(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b == nil {
		return
	}
	pod := b.pod("agent", nil)
	labels := map[string]string{"app": "agent"}
	owner, err := b.core.AppsV1().DaemonSets(b.namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
			},
		},
	}, metav1.CreateOptions{})
	b.must(err)
	patch := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"agent",`+
		`"uid":%q,"controller":true}]}}`, owner.UID)
	_, err = b.core.CoreV1().Pods(b.namespace).
		Patch(t.Context(), "agent", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	b.must(err)
	b.run(b.env.Config(), true)
	b.request("a", "acme.io/a", pod)
	b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		if status := own(e); status.Message == nil || !strings.Contains(*status.Message, "belongs to DaemonSet agent") {
			return fmt.Errorf("the message is %v", status.Message)
		}
		return hasReason(e.Status.Conditions, "Failed", "NoFurtherResponder")
	})
	b.waitRequest("a", "EvictionFailed", "NoFurtherResponder")
	if b.isTerminating("agent") == nil {
		t.Error("the pod was evicted")
	}
}

// A responder is passed over after 20 minutes of silence, on the real API server: its start is set back in etcd, since
// no client may write a start in the past.
func TestSilentResponderIsInterrupted(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b == nil {
		return
	}
	pod := b.pod("web", withResponders(responder("acme.io/high", 10000), responder("acme.io/low", 2000)))
	first := b.run(b.env.Config(), false)
	b.request("a", "acme.io/a", pod)
	e := b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		return hasStates(e, map[string]string{
			"acme.io/high": "Active", "acme.io/low": "Inactive", evictionapi.ImperativeEvictor: "Inactive",
		})
	})
	b.refuses(e, "must stay Active because the responder is in progress", "acme.io/high", "Interrupted", "acme.io/low")
	first.stop()
	b.setBack(e, 21*time.Minute)
	b.run(b.env.Config(), false)
	b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		return hasStates(e, map[string]string{
			"acme.io/high": "Interrupted", "acme.io/low": "Active", evictionapi.ImperativeEvictor: "Inactive",
		})
	})
	if err := b.report(e.Name, evictionapi.ResponderStatus{Name: "acme.io/high", HeartbeatTime: present()}); !apierrors.
		IsInvalid(err) {
		t.Errorf("the heartbeat of a responder that was interrupted: %v", err)
	}
}

// The API server itself refuses a controller that is broken: two Active responders.
func TestTwoActiveAreRefused(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b == nil {
		return
	}
	pod := b.pod("web", withResponders(responder("acme.io/high", 10000), responder("acme.io/low", 2000)))
	b.run(b.env.Config(), false)
	b.request("a", "acme.io/a", pod)
	e := b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		return hasStates(e, map[string]string{
			"acme.io/high": "Active", "acme.io/low": "Inactive", evictionapi.ImperativeEvictor: "Inactive",
		})
	})
	b.refuses(e, "the previously active has not finished processing", "acme.io/high", "Active", "acme.io/low")
}

// refuses has the API server refuse a status in which the first responder is in a state and the second one Active.
func (b *bed) refuses(e *evictionapi.Eviction, words, first, state, second string) {
	b.t.Helper()
	patch := fmt.Sprintf(`{"status":{"targetResponders":[{"name":%q,"state":%q},{"name":%q,"state":"Active"}],`+
		`"responders":[{"name":%q,"startTime":%q}]}}`, first, state, second, second, present().UTC().Format(time.RFC3339))
	_, err := b.evictions().Patch(b.t.Context(), e.Name, "application/strategic-merge-patch+json", []byte(patch),
		metav1.PatchOptions{}, "status")
	if err == nil || !strings.Contains(err.Error(), words) {
		b.t.Errorf("the API server answers %v, want %q", err, words)
	}
}

// setBack sets the start of every responder back, in etcd.
func (b *bed) setBack(e *evictionapi.Eviction, by time.Duration) {
	b.t.Helper()
	u, err := b.evictions().Get(b.t.Context(), e.Name, metav1.GetOptions{})
	b.must(err)
	stored, err := evictionapi.DecodeEviction(u)
	b.must(err)
	for i := range stored.Status.Responders {
		if s := stored.Status.Responders[i].StartTime; s != nil {
			back := metav1.NewTime(s.Add(-by))
			stored.Status.Responders[i].StartTime = &back
		}
	}
	stored.ResourceVersion = ""
	u, err = evictionapi.EncodeEviction(stored)
	b.must(err)
	value, err := json.Marshal(u)
	b.must(err)
	key := "/registry/evictions/" + b.namespace + "/" + e.Name
	encode := base64.StdEncoding.EncodeToString
	url, client := b.env.EtcdClient()
	count := b.etcd(client, url+"/v3/kv/range", map[string]any{"key": encode([]byte(key)), "count_only": true})["count"]
	if count != "1" {
		b.t.Fatalf("etcd has %v objects at %s", count, key)
	}
	b.etcd(client, url+"/v3/kv/put", map[string]any{"key": encode([]byte(key)), "value": encode(value)})
}

func (b *bed) etcd(client *http.Client, url string, body map[string]any) (answer map[string]any) {
	b.t.Helper()
	text, err := json.Marshal(body)
	b.must(err)
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, url, bytes.NewReader(text))
	b.must(err)
	response, err := client.Do(request)
	b.must(err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		b.t.Fatalf("etcd answers %s", response.Status)
	}
	b.must(json.NewDecoder(response.Body).Decode(&answer))
	return answer
}

// A default responder that was canceled before it asked asks for nothing, although its cache says Active still.
func TestCanceledResponderDoesNotEvict(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b == nil {
		return
	}
	pod := b.pod("web", nil)
	b.run(b.env.Config(), false)
	b.request("a", "acme.io/a", pod)
	active := b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		return hasStates(e, map[string]string{evictionapi.ImperativeEvictor: "Active"})
	})
	b.setIntent("a", evictionapi.IntentWithdrawn)
	b.waitRequest("a", "EvictionFailed", "CanceledDueToNoRequesters")
	_, _, r := b.make(b.env.Config())
	if _, err := r.ReconcileSeen(t.Context(), pod, active); !apierrors.IsConflict(err) {
		t.Errorf("the pass on a state that is not so any more: %v, want a conflict", err)
	}
	if b.isTerminating("web") == nil {
		t.Error("a responder that was canceled has evicted the pod")
	}
}
