// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
)

// A Fixture is a cluster with nobody in it but an API server and a disruption controller: no kubelet, no owner, no scheduler acts. What
// goes wrong in a method that takes t ends the test.
type Fixture interface {
	// Namespace makes a namespace, TerminateNamespace begins its deletion.
	Namespace(t *testing.T) string
	TerminateNamespace(t *testing.T, namespace string)
	// Node makes a Node of that name.
	Node(t *testing.T, name string) *corev1.Node
	// Owner makes a ReplicaSet or a StatefulSet with that many replicas. Nothing creates them.
	Owner(t *testing.T, kind, namespace, name string, replicas int32) types.UID
	// Pod creates the pod, status and all, and returns it as it is then.
	Pod(t *testing.T, pod *corev1.Pod) *corev1.Pod
	// SetStatus writes the phase and the readiness of a pod.
	SetStatus(t *testing.T, pod *corev1.Pod, phase corev1.PodPhase, ready bool)
	// Finish removes a pod, as its kubelet does.
	Finish(t *testing.T, pod *corev1.Pod)
	// Budget creates a budget, ChangeBudget changes its spec, SetBudgetStatus its status.
	Budget(t *testing.T, b *policyv1.PodDisruptionBudget)
	ChangeBudget(t *testing.T, namespace, name string, change func(*policyv1.PodDisruptionBudgetSpec))
	SetBudgetStatus(t *testing.T, namespace, name string, change func(*policyv1.PodDisruptionBudgetStatus))
	// Controller stops the disruption controller, or lets it go on.
	Controller(t *testing.T, run bool)
	// GetPod reads a pod, nil for none, and GetBudget a budget, both as the server has them.
	GetPod(t *testing.T, namespace, name string) *corev1.Pod
	GetBudget(t *testing.T, namespace, name string) *policyv1.PodDisruptionBudget
	// Client is the client under test: each of its calls is one request.
	Client() drain.Client
	// DryRun asks what an eviction would be answered.
	DryRun(ctx context.Context, pod drain.PodRef) error
}

// memory is the fixture in memory.
type memory struct{ *Cluster }

// NewFixture returns a fixture in memory, for [TestServer].
func NewFixture(*testing.T) Fixture { return memory{New(Options{NoKubelets: true})} }

func (m memory) Namespace(*testing.T) string { return metav1.NamespaceDefault }

func (m memory) TerminateNamespace(_ *testing.T, namespace string) {
	m.Cluster.TerminateNamespace(namespace)
}

func (m memory) Node(_ *testing.T, name string) *corev1.Node { return m.AddNode(name) }

func (m memory) Owner(_ *testing.T, kind, namespace, name string, replicas int32) types.UID {
	return m.AddWorkload(Workload{Kind: kind, Namespace: namespace, Name: name, Replicas: int(replicas), Scale: true})
}

func (m memory) Pod(_ *testing.T, pod *corev1.Pod) *corev1.Pod {
	m.lock()
	defer m.unlock()
	return m.addPod(pod.DeepCopy())
}

func (m memory) SetStatus(_ *testing.T, pod *corev1.Pod, phase corev1.PodPhase, ready bool) {
	m.UpdatePod(pod.Namespace, pod.Name, func(p *corev1.Pod) {
		p.Status.Phase = phase
		setReady(p, ready, m.o.Now())
	})
}

func (m memory) Finish(_ *testing.T, pod *corev1.Pod) { m.Cluster.Finish(pod.Namespace, pod.Name) }

func (m memory) Budget(_ *testing.T, b *policyv1.PodDisruptionBudget) { m.AddBudget(b) }

func (m memory) ChangeBudget(_ *testing.T, namespace, name string, change func(*policyv1.PodDisruptionBudgetSpec)) {
	m.UpdateBudget(namespace, name, func(b *policyv1.PodDisruptionBudget) { change(&b.Spec) })
}

func (m memory) SetBudgetStatus(_ *testing.T, namespace, name string, change func(*policyv1.PodDisruptionBudgetStatus)) {
	m.UpdateBudget(namespace, name, func(b *policyv1.PodDisruptionBudget) { change(&b.Status) })
}

func (m memory) Controller(_ *testing.T, run bool) { m.PauseBudgets(!run) }

func (m memory) GetPod(_ *testing.T, namespace, name string) *corev1.Pod {
	return m.LivePod(namespace, name)
}

func (m memory) GetBudget(_ *testing.T, namespace, name string) *policyv1.PodDisruptionBudget {
	return m.LiveBudget(namespace, name)
}

func (m memory) Client() drain.Client { return m.Cluster }

func (m memory) DryRun(ctx context.Context, pod drain.PodRef) error { return m.EvictDryRun(ctx, pod) }

// RefTo names a pod with its UID.
func RefTo(pod *corev1.Pod) drain.PodRef {
	return drain.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

// Labelled gives a pod the label app, for [NewPod].
func Labelled(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels["app"] = app
	}
}

// Unready makes a pod that runs and is not ready, InPhase one of another phase, WithGrace one with another grace period, for [NewPod].
func Unready(p *corev1.Pod) { p.Status.Conditions = nil }

// InPhase makes a pod of that phase, not ready.
func InPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase, p.Status.Conditions = phase, nil }
}

// WithGrace makes a pod with that grace period in seconds.
func WithGrace(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To(seconds) }
}
