// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/backoff"
)

// A Bed is a whole cluster for one Drainer: controllers, scheduler and kubelets act. What goes wrong in a method that takes t ends the test.
type Bed interface {
	// Parts are what a Drainer is made of here. Its requests pass the script.
	Parts(t *testing.T) drain.Options
	// Plot is the script.
	Plot() *Script
	// Patience is how long anything may take at most, Silence how long a request takes that gets no answer, and Vigil how long a case
	// looks on where something must not happen: minutes where time costs nothing.
	Patience() time.Duration
	Silence() time.Duration
	Vigil() time.Duration
	// Namespace is where pods of the test are.
	Namespace() string
	// Node makes a Node that is ready, and returns its name: that in t, or one derived from it.
	Node(t *testing.T, name string) string
	DeleteNode(t *testing.T, name string)
	UpdateNode(t *testing.T, name string, change func(*corev1.Node))
	// App makes an owner of the kind with as many pods, labelled app=name, and returns when they are ready. The scheduler places them.
	App(t *testing.T, kind, name string, replicas int)
	// Pod makes a pod, which may name its node, and returns when it is ready.
	Pod(t *testing.T, pod *corev1.Pod)
	// DeletePod deletes a pod as somebody else would.
	DeletePod(t *testing.T, name string)
	// Budget makes a budget and returns when its status is there, ChangeBudget changes its spec.
	Budget(t *testing.T, b *policyv1.PodDisruptionBudget)
	ChangeBudget(t *testing.T, name string, change func(*policyv1.PodDisruptionBudgetSpec))
	// GetNode and GetPods read from the server; GetNode returns nil where there is none.
	GetNode(t *testing.T, name string) *corev1.Node
	GetPods(t *testing.T, node string) []*corev1.Pod
}

// A blindBed is a bed whose cache can lose its watch.
type blindBed interface {
	DropWatch()
	RestoreWatch()
}

// A memoryBed is a bed in memory. Its cache, its controllers and its server take their time, so that every order of things occurs.
type memoryBed struct{ *Cluster }

// NewBed returns a bed in memory, for [TestDrainer] in bubbles of testing/synctest.
func NewBed(t *testing.T) Bed {
	return memoryBed{Start(t, Options{
		CacheLag: 20 * time.Millisecond, BudgetLag: 15 * time.Millisecond, ControllerLag: 30 * time.Millisecond, Latency: 5 * time.Millisecond,
		Termination: 3 * time.Second, Startup: time.Second, Readiness: 2 * time.Second,
	})}
}

func (b memoryBed) Parts(*testing.T) drain.Options {
	return drain.Options{Cache: b.Cluster, Client: b.Cluster, Leases: b.Cluster, Now: b.Cluster.o.Now}
}

func (b memoryBed) Plot() *Script           { return b.Script }
func (b memoryBed) Patience() time.Duration { return 20 * time.Minute }
func (b memoryBed) Silence() time.Duration  { return 40 * time.Second }
func (b memoryBed) Vigil() time.Duration    { return 10 * time.Minute }
func (b memoryBed) Namespace() string       { return metav1.NamespaceDefault }

func (b memoryBed) Node(t *testing.T, name string) string {
	b.AddNode(name)
	b.catchUp(t)
	return name
}

func (b memoryBed) DeleteNode(_ *testing.T, name string) { b.Cluster.DeleteNode(name) }

func (b memoryBed) UpdateNode(_ *testing.T, name string, change func(*corev1.Node)) {
	b.Cluster.UpdateNode(name, change)
}

func (b memoryBed) App(t *testing.T, kind, name string, replicas int) {
	b.AddWorkload(Workload{Kind: kind, Name: name, Replicas: replicas})
	b.catchUp(t)
}

func (b memoryBed) Pod(t *testing.T, pod *corev1.Pod) {
	b.lock()
	b.addPod(pod.DeepCopy())
	b.unlock()
	b.catchUp(t)
}

func (b memoryBed) DeletePod(t *testing.T, name string) {
	b.lock()
	defer b.unlock()
	if err := b.deletePod(eviction{key: keyOf(NewPod(b.Namespace(), name, ""))}); err != nil {
		t.Fatal(err)
	}
}

func (b memoryBed) Budget(t *testing.T, budget *policyv1.PodDisruptionBudget) {
	b.AddBudget(budget)
	b.catchUp(t)
}

func (b memoryBed) ChangeBudget(_ *testing.T, name string, change func(*policyv1.PodDisruptionBudgetSpec)) {
	b.UpdateBudget(b.Namespace(), name, func(budget *policyv1.PodDisruptionBudget) { change(&budget.Spec) })
}

func (b memoryBed) GetNode(_ *testing.T, name string) *corev1.Node  { return b.LiveNode(name) }
func (b memoryBed) GetPods(_ *testing.T, node string) []*corev1.Pod { return b.LivePods(node) }

// catchUp waits until controllers and cache have seen everything.
func (b memoryBed) catchUp(t *testing.T) {
	t.Helper()
	if !backoff.Sleep(t.Context(), 10*(b.o.CacheLag+b.o.BudgetLag+b.o.ControllerLag)) {
		t.Fatal("waiting for the controllers: the test ended")
	}
}
