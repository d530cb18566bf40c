// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/internal/evictionapi"
	"github.com/belayproject/belay/internal/testenv"
)

const (
	migrate  = "vm.example.com/migrate"
	shutdown = "vm.example.com/shutdown"
)

// An evictionWorld is a control plane that serves EvictionRequests, with one node of a test. The test plays the
// evictionrequest-controller.
type evictionWorld struct {
	*cluster
	objects dynamic.Interface
	node    string

	mu       sync.Mutex
	now      time.Time
	requests []string // of the drain: method and path, "raw" for pods as JSON
}

// gatedEnv starts a control plane with the feature gate on.
func gatedEnv(t *testing.T) *testenv.Env {
	t.Helper()
	return testenv.Start(t, testenv.Options{Args: map[testenv.Component][]string{testenv.APIServer: {
		"--feature-gates=EvictionRequestAPI=true", "--runtime-config=lifecycle.k8s.io/v1alpha1=true",
	}}})
}

func newEvictionWorld(t *testing.T, env *testenv.Env) *evictionWorld {
	t.Helper()
	c := &cluster{env: env, admin: clientset(t, env.Config()), namespace: env.Namespace(t)}
	w := &evictionWorld{cluster: c, now: time.Now()}
	var err error
	w.objects, err = dynamic.NewForConfig(env.Config())
	must(t, err)
	w.node = c.nodeWithPods(t)
	t.Cleanup(c.playKubelet(t, w.node))
	return w
}

// pod makes a pod with these eviction responders; the library's own type of a pod has no such field.
func (w *evictionWorld) pod(t *testing.T, name string, responders ...string) *corev1.Pod {
	t.Helper()
	var list []any
	for i, r := range responders {
		list = append(list, map[string]any{"name": r, "priority": int64(10000 - i)})
	}
	spec := map[string]any{
		"nodeName": w.node, "terminationGracePeriodSeconds": int64(1),
		"containers": []any{map[string]any{"name": "main", "image": "example.com/main"}},
	}
	if list != nil {
		spec["evictionResponders"] = list
	}
	_, err := w.objects.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(w.namespace).Create(t.Context(),
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": map[string]any{
				"name": name, "labels": map[string]any{"app": name}, "ownerReferences": []any{map[string]any{
					"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "r1", "controller": true,
				}},
			},
		}}, metav1.CreateOptions{})
	must(t, err)
	pods := w.admin.CoreV1().Pods(w.namespace)
	pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	must(t, err)
	return pod
}

// RoundTripper counts the requests of a drain.
type countingTripper struct {
	w    *evictionWorld
	next http.RoundTripper
}

func (c countingTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	line := r.Method + " " + r.URL.Path
	if strings.HasSuffix(r.URL.Path, "/pods") && !strings.Contains(r.Header.Get("Accept"), "protobuf") {
		line += " raw"
	}
	c.w.mu.Lock()
	c.w.requests = append(c.w.requests, line)
	c.w.mu.Unlock()
	return c.next.RoundTrip(r)
}

// sent counts the requests of the drains whose line has all of the parts.
func (w *evictionWorld) sent(parts ...string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.requests {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			n++
		}
	}
	return n
}

func (w *evictionWorld) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// passes has time pass for the drain, and not for the servers.
func (w *evictionWorld) passes(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// open starts a process that drains the node.
func (w *evictionWorld) open(t *testing.T) *kube.Drainer {
	t.Helper()
	config := rest.CopyConfig(w.env.Config())
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countingTripper{w, next} })
	d, err := kube.Open(t.Context(), config, kube.OpenOptions{
		Cache: kube.CacheOptions{Node: w.node}, Drain: drain.Options{Now: w.clock},
	})
	must(t, err)
	t.Cleanup(d.Close)
	return d
}

func (w *evictionWorld) request(holder string) drain.Request {
	r := evictAll("m1")
	r.Node, r.Holder = w.node, holder
	return r
}

// until runs passes, with seconds of the drain's time between them, until done returns the empty string.
func (w *evictionWorld) until(
	t *testing.T, d *kube.Drainer, r drain.Request, step time.Duration, done func(drain.Status) string,
) (st drain.Status) {
	t.Helper()
	eventually(t, func() string {
		var err error
		w.passes(step)
		if st, _, err = d.ReconcileRequest(t.Context(), r); err != nil {
			return err.Error()
		}
		if why := done(st); why != "" {
			return fmt.Sprintf("%s: phase %s, pods %+v", why, st.Phase, st.Blockers)
		}
		return ""
	})
	return st
}

// waitsWith returns a condition: the pod alone is left, waits for its responder, and its message has the text.
func waitsWith(pod, text string) func(drain.Status) string {
	return func(st drain.Status) string {
		if len(st.Blockers) != 1 || st.Blockers[0].Name != pod || st.Blockers[0].Reason != "WaitingForHook" ||
			!strings.Contains(st.Blockers[0].Message, text) {
			return fmt.Sprintf("want pod %q alone, waiting with %q", pod, text)
		}
		return ""
	}
}

func isDrained(st drain.Status) string {
	if st.Phase != drain.Drained {
		return "want the node drained"
	}
	return ""
}

// evictionRequests returns those of the namespace.
func (w *evictionWorld) evictionRequests(t *testing.T) []*evictionapi.EvictionRequest {
	t.Helper()
	list, err := w.objects.Resource(evictionapi.RequestsResource()).Namespace(w.namespace).
		List(t.Context(), metav1.ListOptions{})
	must(t, err)
	var out []*evictionapi.EvictionRequest
	for i := range list.Items {
		request, err := evictionapi.DecodeRequest(&list.Items[i])
		must(t, err)
		out = append(out, request)
	}
	return out
}

// onlyRequest returns the one EvictionRequest of the namespace.
func (w *evictionWorld) onlyRequest(t *testing.T) *evictionapi.EvictionRequest {
	t.Helper()
	all := w.evictionRequests(t)
	if len(all) != 1 {
		t.Fatalf("%d EvictionRequests, want 1: %+v", len(all), all)
	}
	return all[0]
}

// observe writes as the controller does that it has seen an EvictionRequest, with a true condition where one is given.
func (w *evictionWorld) observe(t *testing.T, request *evictionapi.EvictionRequest, condition, reason string) {
	t.Helper()
	request.Status.ObservedGeneration = &request.Generation
	if condition != "" {
		request.Status.Conditions = []metav1.Condition{trueCondition(condition, reason)}
	}
	object, err := evictionapi.EncodeRequest(request)
	must(t, err)
	_, err = w.objects.Resource(evictionapi.RequestsResource()).Namespace(w.namespace).
		UpdateStatus(t.Context(), object, metav1.UpdateOptions{})
	must(t, err)
}

func trueCondition(kind, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "the test says so",
		LastTransitionTime: metav1.Now()}
}

// evict makes the Eviction of a pod as the controller does, with the first responder active.
func (w *evictionWorld) evict(t *testing.T, pod *corev1.Pod, responders ...string) *evictionapi.Eviction {
	t.Helper()
	evictions := w.objects.Resource(evictionapi.EvictionsResource()).Namespace(w.namespace)
	object, err := evictionapi.EncodeEviction(&evictionapi.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID), Labels: map[string]string{"belay.dev/drain": "requester"}},
		Spec: evictionapi.EvictionSpec{
			Target: evictionapi.Target{Pod: &evictionapi.PodReference{Name: pod.Name, UID: pod.UID}},
		},
	})
	must(t, err)
	object, err = evictions.Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
	eviction, err := evictionapi.DecodeEviction(object)
	must(t, err)
	for i, name := range append(responders, evictionapi.ImperativeEvictor) {
		target := evictionapi.TargetResponder{
			Name: name, Priority: ptr.To(int32(10000 - i)), State: evictionapi.StateInactive,
		}
		status := evictionapi.ResponderStatus{Name: name}
		if name == evictionapi.ImperativeEvictor {
			target.Priority = ptr.To(int32(evictionapi.ImperativeEvictorPriority))
		}
		if i == 0 {
			target.State, status.StartTime = evictionapi.StateActive, ptr.To(metav1.Now())
		}
		eviction.Status.TargetResponders = append(eviction.Status.TargetResponders, target)
		eviction.Status.Responders = append(eviction.Status.Responders, status)
	}
	return w.update(t, eviction)
}

// update writes the status of an Eviction.
func (w *evictionWorld) update(t *testing.T, eviction *evictionapi.Eviction) *evictionapi.Eviction {
	t.Helper()
	object, err := evictionapi.EncodeEviction(eviction)
	must(t, err)
	object, err = w.objects.Resource(evictionapi.EvictionsResource()).Namespace(w.namespace).
		UpdateStatus(context.WithoutCancel(t.Context()), object, metav1.UpdateOptions{})
	must(t, err)
	eviction, err = evictionapi.DecodeEviction(object)
	must(t, err)
	return eviction
}

// says has a responder report its progress.
func (w *evictionWorld) says(
	t *testing.T, eviction *evictionapi.Eviction, i int, message string,
) *evictionapi.Eviction {
	t.Helper()
	eviction.Status.Responders[i].Message = &message
	eviction.Status.Responders[i].HeartbeatTime = ptr.To(metav1.Now())
	return w.update(t, eviction)
}

// completes has a responder complete, after which the next is active.
func (w *evictionWorld) completes(t *testing.T, eviction *evictionapi.Eviction, i int) *evictionapi.Eviction {
	t.Helper()
	eviction.Status.Responders[i].CompletionTime = ptr.To(metav1.Now())
	eviction = w.update(t, eviction)
	eviction.Status.TargetResponders[i].State = evictionapi.StateCompleted
	eviction.Status.TargetResponders[i+1].State = evictionapi.StateActive
	eviction.Status.Responders[i+1].StartTime = ptr.To(metav1.Now())
	return w.update(t, eviction)
}

func (w *evictionWorld) currentEviction(t *testing.T, pod *corev1.Pod) *evictionapi.Eviction {
	t.Helper()
	object, err := w.objects.Resource(evictionapi.EvictionsResource()).Namespace(w.namespace).
		Get(t.Context(), string(pod.UID), metav1.GetOptions{})
	must(t, err)
	eviction, err := evictionapi.DecodeEviction(object)
	must(t, err)
	return eviction
}

func (w *evictionWorld) podWithoutOwner(t *testing.T, name string, responders ...string) {
	t.Helper()
	w.pod(t, name, responders...)
	patch := []byte(`{"metadata":{"ownerReferences":null}}`)
	_, err := w.admin.CoreV1().Pods(w.namespace).
		Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
}
