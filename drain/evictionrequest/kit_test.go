// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/evictionrequest"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/internal/evictionapi"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
)

const patience = 2 * time.Minute

// A bed is a namespace of the control plane with what a test does there.
type bed struct {
	t         *testing.T
	env       *testenv.Env
	namespace string
	core      kubernetes.Interface
	client    dynamic.Interface
}

// newBed returns nil on an API server before 1.37, of which it asserts that it does not serve the API.
func newBed(t *testing.T) *bed {
	t.Helper()
	env := shared.Env(t)
	finder, err := discovery.NewDiscoveryClientForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	served, err := evictionrequest.IsServed(t.Context(), finder)
	if want := env.Minor(t) >= 37; err != nil || served != want {
		t.Fatalf("IsServed: %v, %v; want %v", served, err, want)
	}
	if !served {
		return nil
	}
	b := &bed{t: t, env: env, namespace: env.Namespace(t)}
	b.core, err = kubernetes.NewForConfig(env.Config())
	b.must(err)
	b.client, err = dynamic.NewForConfig(env.Config())
	b.must(err)
	return b
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// parts are what a running process has; stop ends it.
type parts struct {
	stop func()
}

// make makes the parts of a process over a configuration of its clients. The cache of pods is the caller's to start.
func (b *bed) make(config *rest.Config) (
	informers.SharedInformerFactory, *evictionrequest.Controller, *evictionrequest.Responder,
) {
	b.t.Helper()
	client, err := dynamic.NewForConfig(config)
	b.must(err)
	core, err := kubernetes.NewForConfig(b.env.Config())
	b.must(err)
	factory := kube.NewFactory(core, kube.CacheOptions{})
	pods, err := kube.NewCache(factory, kube.CacheOptions{})
	b.must(err)
	evict, err := kube.NewClientForConfig(config, nil, kube.ClientOptions{})
	b.must(err)
	o := evictionrequest.Options{Client: client, Pods: pods.View(), Evict: evict, Namespace: b.namespace}
	controller, err := evictionrequest.NewController(o)
	b.must(err)
	responder, err := evictionrequest.NewResponder(o)
	b.must(err)
	return factory, controller, responder
}

// run starts a process with the Controller and, if asked for, the Responder, over a configuration of its clients.
func (b *bed) run(config *rest.Config, withResponder bool) parts {
	b.t.Helper()
	factory, controller, responder := b.make(config)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	factory.Start(ctx.Done())
	wg.Go(func() {
		if err := controller.Run(ctx); err != nil {
			b.t.Error(err)
		}
	})
	if withResponder {
		wg.Go(func() {
			if err := responder.Run(ctx); err != nil {
				b.t.Error(err)
			}
		})
	}
	stop := sync.OnceFunc(func() { cancel(); wg.Wait(); factory.Shutdown() })
	b.t.Cleanup(stop)
	return parts{stop: stop}
}

// pod creates a pod on a node that no kubelet plays, Running, after the changes to its spec.
func (b *bed) pod(name string, change func(spec map[string]any)) drain.PodRef {
	b.t.Helper()
	spec := map[string]any{
		"nodeName": "n1", "terminationGracePeriodSeconds": int64(30),
		"containers": []any{map[string]any{"name": "main", "image": "none"}},
	}
	if change != nil {
		change(spec)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"app": name}}, "spec": spec,
	}}
	pods := b.client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(b.namespace)
	created, err := pods.Create(b.t.Context(), u, metav1.CreateOptions{})
	b.must(err)
	b.phase(name, corev1.PodRunning)
	return drain.PodRef{Namespace: b.namespace, Name: name, UID: created.GetUID()}
}

func (b *bed) phase(name string, phase corev1.PodPhase) {
	b.t.Helper()
	patch := fmt.Sprintf(`{"status":{"phase":%q,"conditions":[{"type":"Ready","status":"True"}]}}`, phase)
	_, err := b.core.CoreV1().Pods(b.namespace).
		Patch(b.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	b.must(err)
}

// kill ends a pod as its kubelet does at the end of its grace period.
func (b *bed) kill(name string) {
	b.t.Helper()
	none := int64(0)
	b.must(b.core.CoreV1().Pods(b.namespace).Delete(b.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &none}))
}

func withResponders(all ...evictionapi.PodResponder) func(map[string]any) {
	return func(spec map[string]any) {
		var list []any
		for _, r := range all {
			list = append(list, map[string]any{"name": r.Name, "priority": int64(*r.Priority)})
		}
		spec["evictionResponders"] = list
	}
}

func responder(name string, priority int32) evictionapi.PodResponder {
	return evictionapi.PodResponder{Name: name, Priority: &priority}
}

// request creates an EvictionRequest.
func (b *bed) request(name, requester string, pod drain.PodRef) {
	b.t.Helper()
	r := &evictionapi.EvictionRequest{}
	r.Name = name
	r.Spec = evictionapi.EvictionRequestSpec{
		Requester: requester, Intent: evictionapi.IntentEviction,
		Target: evictionapi.Target{Pod: &evictionapi.PodReference{Name: pod.Name, UID: pod.UID}},
	}
	u, err := evictionapi.EncodeRequest(r)
	b.must(err)
	_, err = b.requests().Create(b.t.Context(), u, metav1.CreateOptions{})
	b.must(err)
}

func (b *bed) requests() dynamic.ResourceInterface {
	return b.client.Resource(evictionapi.RequestsResource()).Namespace(b.namespace)
}

func (b *bed) evictions() dynamic.ResourceInterface {
	return b.client.Resource(evictionapi.EvictionsResource()).Namespace(b.namespace)
}

func (b *bed) setIntent(name, intent string) {
	b.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"intent":%q}}`, intent)
	_, err := b.requests().Patch(b.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	b.must(err)
}

func (b *bed) getRequest(name string) (*evictionapi.EvictionRequest, error) {
	u, err := b.requests().Get(b.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return evictionapi.DecodeRequest(u)
}

// of returns the Evictions of a pod.
func (b *bed) of(pod drain.PodRef) ([]*evictionapi.Eviction, error) {
	list, err := b.evictions().List(b.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var all []*evictionapi.Eviction
	for i := range list.Items {
		e, err := evictionapi.DecodeEviction(&list.Items[i])
		if err != nil {
			return nil, err
		}
		if e.Spec.Target.Pod.UID == pod.UID {
			all = append(all, e)
		}
	}
	return all, nil
}

func describe(all []*evictionapi.Eviction) string {
	text, err := json.Marshal(all)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// waitEviction waits until the pod has exactly one Eviction that passes the check, and returns it.
func (b *bed) waitEviction(pod drain.PodRef, check func(*evictionapi.Eviction) error) *evictionapi.Eviction {
	b.t.Helper()
	var found *evictionapi.Eviction
	b.wait(func() error {
		all, err := b.of(pod)
		if err != nil {
			return err
		}
		if len(all) != 1 {
			return fmt.Errorf("there are %d Evictions, want one: %s", len(all), describe(all))
		}
		found = all[0]
		return check(found)
	})
	return found
}

func (b *bed) wait(check func() error) {
	b.t.Helper()
	if err := testproc.Poll(patience, check); err != nil {
		b.t.Fatal(err)
	}
}

// waitRequest waits until a request has both conditions with these reasons.
func (b *bed) waitRequest(name, evicted, failed string) *evictionapi.EvictionRequest {
	b.t.Helper()
	var r *evictionapi.EvictionRequest
	b.wait(func() error {
		var err error
		if r, err = b.getRequest(name); err != nil {
			return err
		}
		return errors.Join(
			hasReason(r.Status.Conditions, evictionapi.ConditionTargetEvicted, evicted),
			hasReason(r.Status.Conditions, evictionapi.ConditionFailed, failed),
		)
	})
	return r
}

// The status of a condition follows from its reason.
func hasReason(conditions []metav1.Condition, kind, reason string) error {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return fmt.Errorf("condition %s is missing", kind)
	}
	want := metav1.ConditionTrue
	switch reason {
	case evictionapi.ReasonAwaitingEviction, evictionapi.ReasonSucceeded, evictionapi.ReasonEvictionFailed:
		want = metav1.ConditionFalse
	}
	if c.Reason != reason || c.Status != want {
		return fmt.Errorf("condition %s is %s %q (%s), want %s %q", kind, c.Status, c.Reason, c.Message, want, reason)
	}
	return nil
}

// hasStates checks the states of the responders, by name.
func hasStates(e *evictionapi.Eviction, want map[string]string) error {
	got := map[string]string{}
	for _, r := range e.Status.TargetResponders {
		got[r.Name] = r.State
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("the states are %v, want %v", got, want)
	}
	return nil
}

// report writes the status of a responder, as a responder of another program does.
func (b *bed) report(eviction string, status evictionapi.ResponderStatus) error {
	fields := map[string]any{"name": status.Name}
	if status.HeartbeatTime != nil {
		fields["heartbeatTime"] = status.HeartbeatTime
	}
	if status.CompletionTime != nil {
		fields["completionTime"] = status.CompletionTime
	}
	text, err := json.Marshal(map[string]any{"status": map[string]any{"responders": []any{fields}}})
	if err != nil {
		return err
	}
	_, err = b.evictions().Patch(
		b.t.Context(), eviction, types.StrategicMergePatchType, text, metav1.PatchOptions{}, "status")
	return err
}

func present() *metav1.Time {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	return &now
}

// complete is what a responder writes at its end. The start may be in the same second.
func (b *bed) complete(eviction, name string) {
	b.t.Helper()
	b.must(b.report(eviction, evictionapi.ResponderStatus{Name: name, CompletionTime: present()}))
}
