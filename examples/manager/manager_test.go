// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
	machinev1alpha1 "github.com/belayproject/belay/machine/v1alpha1"
	"github.com/belayproject/belay/rollout"
	rolloutkube "github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
	rolloutv1alpha1 "github.com/belayproject/belay/rollout/v1alpha1"
)

// TestOneManager has one manager drain a node, take a rollout over two others, and make and end a machine, with one
// watch of each kind of object for all three.
func TestOneManager(t *testing.T) {
	b := newBed(t)
	const user = "example-manager"
	p, cloud := newParts()
	mgr := b.newManager(b.user(user))
	b.must(p.addTo(t.Context(), mgr))
	stop := b.start(mgr)

	b.node("work-0", map[string]string{"for": "work"})
	b.node("work-1", map[string]string{"for": "work"})
	namespace := b.env.Namespace(t)
	b.deploy(namespace, 2)
	b.drains(namespace, "work-0", "work-1")
	b.rollsOut("fleet-0", "fleet-1")
	b.makesMachine(namespace, cloud)

	watches := b.watches(user)
	t.Logf("watches at the API server, by its audit log: %v", watches)
	for _, resource := range []string{"pods", "nodes", "poddisruptionbudgets"} {
		if watches[resource] != 1 {
			t.Errorf("%d watches of %s, want 1 for the whole manager", watches[resource], resource)
		}
	}
	for resource, n := range watches {
		if n != 1 {
			t.Errorf("%d watches of %s, want 1", n, resource)
		}
	}
	b.wantMetrics(p.drain, "belay_drain_nodes", "belay_drain_evictions_total", "belay_drain_pass_duration_seconds")
	b.wantMetrics(p.rollout, "belay_rollout_nodes", "belay_rollout_phase", "belay_rollout_updates_total")
	b.wantMetrics(p.machine, "belay_machine_calls_total", "belay_machine_steps_total", "belay_machine_orphans")
	stop()
	if have := b.names(p.rollout); have["belay_rollout_phase"] {
		t.Errorf("the metrics %v of a manager that has stopped, want none of how rollouts stand", have)
	}
}

// deploy runs pods of a Deployment on the nodes for work, behind a budget that lets one go at a time.
func (b bed) deploy(namespace string, replicas int32) {
	b.Helper()
	labels := map[string]string{"app": "web"}
	_, err := b.core.AppsV1().Deployments(namespace).Create(b.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{"for": "work"},
				Containers:   []corev1.Container{{Name: "app", Image: "app"}},
			}},
		},
	}, metav1.CreateOptions{})
	b.must(err)
	least := intstr.FromInt32(replicas - 1)
	_, err = b.core.PolicyV1().PodDisruptionBudgets(namespace).Create(b.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: labels},
		},
	}, metav1.CreateOptions{})
	b.must(err)
	b.eventually("all pods to run behind their budget", func(ctx context.Context) error {
		budget, err := b.core.PolicyV1().PodDisruptionBudgets(namespace).Get(ctx, "web", metav1.GetOptions{})
		if err == nil && budget.Status.CurrentHealthy != replicas {
			err = fmt.Errorf("%d of %d pods are healthy", budget.Status.CurrentHealthy, replicas)
		}
		return err
	})
}

// podsOn lists the pods of a namespace on a node that are not ending.
func (b bed) podsOn(ctx context.Context, namespace, node string) ([]string, error) {
	list, err := b.core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names, nil
}

// drains asks for a drain of that one of the nodes which has more pods, by the annotation, waits for its end, and has
// the node released.
func (b bed) drains(namespace string, nodes ...string) {
	b.Helper()
	node, most := "", 0
	for _, name := range nodes {
		pods, err := b.podsOn(b.Context(), namespace, name)
		b.must(err)
		if len(pods) > most {
			node, most = name, len(pods)
		}
	}
	if node == "" {
		b.Fatalf("no pod runs on %v: there is nothing to drain", nodes)
	}
	b.annotate(node, "example.com/drain", "kernel-6.12")
	b.eventually("the node to be drained", func(ctx context.Context) error {
		n, err := b.core.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		left, err := b.podsOn(ctx, namespace, node)
		if err == nil && (len(left) > 0 || !n.Spec.Unschedulable) {
			err = fmt.Errorf("the pods %v are left, unschedulable is %t", left, n.Spec.Unschedulable)
		}
		return err
	})
	b.annotate(node, "example.com/drain", nil)
	b.eventually("the node to be released", func(ctx context.Context) error {
		n, err := b.core.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err == nil && (n.Spec.Unschedulable || n.Annotations[drain.MarkAnnotation] != "") {
			err = fmt.Errorf("unschedulable is %t, the mark %q", n.Spec.Unschedulable, n.Annotations[drain.MarkAnnotation])
		}
		return err
	})
}

// firmware is an Updater whose node runs what was applied last.
type firmware struct {
	mu   sync.Mutex
	runs protocol.Revision
}

func (f *firmware) Observe(context.Context) (nodeagent.Observation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return nodeagent.Observation{Current: f.runs, BootID: "boot-1"}, nil
}

func (f *firmware) Prepare(context.Context, protocol.Revision) error { return nil }

func (f *firmware) Apply(_ context.Context, a nodeagent.Attempt) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs = a.Revision
	return nil
}

func (f *firmware) Verify(context.Context, nodeagent.Attempt) (nodeagent.Health, error) {
	return nodeagent.Health{Verdict: nodeagent.Pass}, nil
}

func (f *firmware) Revert(context.Context, nodeagent.Attempt) error { return nodeagent.ErrIrreversible }

// memory is a nodeagent.Disk.
type memory struct{ records sync.Map }

func (m *memory) Get(_ context.Context, stream string) ([]byte, error) {
	if payload, ok := m.records.Load(stream); ok {
		return payload.([]byte), nil
	}
	return nil, fs.ErrNotExist
}

func (m *memory) Put(_ context.Context, stream string, payload []byte) error {
	m.records.Store(stream, payload)
	return nil
}

// rollsOut takes a revision that disrupts nodes over them, one at a time, with an agent for each.
func (b bed) rollsOut(nodes ...string) {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	updaters := map[string]*firmware{}
	for _, name := range nodes {
		b.node(name, map[string]string{"fleet": "firmware"})
		updater := &firmware{runs: protocol.Revision{Name: "v1", Digest: rolloutv1alpha1.OpaqueDigest("one")}}
		updaters[name] = updater
		wg.Go(func() {
			err := rolloutkube.RunAgent(ctx, b.env.Config(), rolloutkube.AgentOptions{Node: name, Agent: nodeagent.Options{
				Disk: &memory{}, Updater: updater, VerifyFor: time.Millisecond, VerifyEvery: time.Millisecond,
			}})
			if err != nil {
				b.Errorf("the agent of %s ended with %v", name, err)
			}
		})
	}
	target := rolloutv1alpha1.PinnedRevision{Name: "v2", Digest: rolloutv1alpha1.OpaqueDigest("two")}
	b.create(rolloutv1alpha1.RevisionsResource, rolloutv1alpha1.RevisionKind, "", target.Name, &rolloutv1alpha1.Revision{
		Spec: rolloutv1alpha1.RevisionSpec{Digest: target.Digest, Opaque: "two"},
	})
	b.create(rolloutv1alpha1.RolloutsResource, rolloutv1alpha1.RolloutKind, "", "firmware", &rolloutv1alpha1.Rollout{
		Spec: rolloutv1alpha1.RolloutSpec{
			Domain: "example", Revision: target,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "firmware"}},
			Caps:     []rolloutv1alpha1.Cap{{Scope: rolloutv1alpha1.Scope(rollout.Total), Max: intstr.FromInt32(1)}},
		},
	})
	b.eventually("the rollout to be completed", func(ctx context.Context) error {
		phase, err := b.phase(ctx, rolloutv1alpha1.RolloutsResource, "", "firmware")
		if err == nil && phase != string(rollout.Completed) {
			err = fmt.Errorf("its phase is %q", phase)
		}
		return err
	})
	stop()
	wg.Wait()
	for name, u := range updaters {
		if u.runs.Name != target.Name {
			b.Errorf("node %s runs %q, want %q", name, u.runs.Name, target.Name)
		}
	}
}

// makesMachine declares a machine, gives its instance a Node, and deletes it: the Node is drained and goes too.
func (b bed) makesMachine(namespace string, cloud *machinetest.Memory) {
	b.Helper()
	machines := b.objects.Resource(machinev1alpha1.MachinesResource).Namespace(namespace)
	b.create(machinev1alpha1.MachinesResource, machinev1alpha1.MachineKind, namespace, "one", &machinev1alpha1.Machine{})
	var id string
	b.eventually("the machine to have an instance", func(ctx context.Context) error {
		u, err := machines.Get(ctx, "one", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if id, _, err = unstructured.NestedString(u.Object, "spec", "providerID"); err == nil && id == "" {
			err = fmt.Errorf("it has no providerID, its status is %v", u.Object["status"])
		}
		return err
	})
	withID := func(n *corev1.Node) { n.Spec.ProviderID = id }
	node, err := b.env.CreateNode(b.Context(), "machine-one", testenv.KwokNode, withID)
	b.must(err)
	b.eventually("the machine to run", func(ctx context.Context) error {
		phase, err := b.phase(ctx, machinev1alpha1.MachinesResource, namespace, "one")
		if err == nil && phase != string(machine.PhaseRunning) {
			err = fmt.Errorf("its phase is %q", phase)
		}
		return err
	})
	b.must(machines.Delete(b.Context(), "one", metav1.DeleteOptions{}))
	b.eventually("the machine to be gone", func(ctx context.Context) error {
		u, err := machines.Get(ctx, "one", metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("its status is %v", u.Object["status"])
		}
		return ignoreNotFound(err)
	})
	if _, err := b.core.CoreV1().Nodes().Get(b.Context(), node.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		b.Errorf("the Node of a machine that is gone: %v, want that it is not found", err)
	}
	for _, i := range cloud.Instances() {
		if i.State == provider.Running {
			b.Errorf("instance %q of a machine that is gone is %s", i.Token, i.State)
		}
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
