// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/internal/backoff"
)

const (
	setupTimeout = 4 * time.Minute
	setupOfPod   = 50 * time.Millisecond // more, for each
	playLabel    = "bench.belay.dev/play"
	appLabel     = "bench.belay.dev/app"
	spares       = 2
	roomy        = 1000 // pods on a spare node, or all of the play's
	setupWorkers = 16   // requests at once that set a play up
)

// A Shape is what a play has on its nodes: workloads that fill the nodes to be drained exactly.
type Shape struct {
	Nodes, PodsPerNode int
	Ready, End         time.Duration // how long a pod takes to become ready, and to end
	// Apps is how many workloads share the pods; zero means one. Pods must be a multiple of it.
	Apps int
	// MaxUnavailable is the budget of each workload; nil means none.
	MaxUnavailable *intstr.IntOrString
	// Held spends one unit of the budget from the start, until Release: a further pod, on a spare node, is not ready.
	Held bool
	// Stateful makes the one workload a StatefulSet instead of a ReplicaSet.
	Stateful bool
	// Room is how many pods more than its own each node takes once it is filled.
	Room int
}

// Pods is how many pods the play has.
func (s Shape) Pods() int { return s.Nodes * s.PodsPerNode }

func (s Shape) countApps() int { return max(1, s.Apps) }

// A Play is a workload on nodes of its own, and its observer.
type Play struct {
	Shape
	Nodes    []string
	Observer *Observer

	stage *Stage
	name  string // of the namespace, the workload, the budget and the label
	end   context.CancelFunc
}

// Play sets up what the shape says. The nodes to be drained are filled by the scheduler, since there is no other place; then
// there are spare nodes, which have room for everything.
func (s *Stage) Play(ctx context.Context, shape Shape) (*Play, error) {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout+time.Duration(shape.Pods())*setupOfPod)
	defer cancel()
	p := &Play{Shape: shape, stage: s, name: fmt.Sprintf("play-%d", s.serial.Add(1))}
	if err := p.set(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("setting up %q: %w", p.name, err), p.Close(context.WithoutCancel(ctx)))
	}
	return p, nil
}

func (p *Play) set(ctx context.Context) error {
	if err := p.namespace(ctx); err != nil {
		return err
	}
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	p.end = end
	var err error
	if p.Observer, err = observe(background, p.stage.client, p.name); err != nil {
		return err
	}
	for i := range p.Shape.Nodes {
		p.Nodes = append(p.Nodes, fmt.Sprintf("%s-node-%d", p.name, i))
	}
	if err := atOnce(p.Shape.Nodes, func(i int) error { return p.node(ctx, p.Nodes[i], p.PodsPerNode) }); err != nil {
		return err
	}
	create := func(i int) error { return errors.Join(p.budget(ctx, i), p.workload(ctx, i)) }
	if err := atOnce(p.countApps(), create); err != nil {
		return err
	}
	if err := p.Observer.Await(ctx, func(seen Seen) bool { return seen.Healthy == p.Pods() }); err != nil {
		return fmt.Errorf("waiting for %d ready pods: %w", p.Pods(), err)
	}
	for i := range spares {
		if err := p.node(ctx, fmt.Sprintf("%s-spare-%d", p.name, i), max(roomy, p.Pods())); err != nil {
			return err
		}
	}
	if err := p.makeRoom(ctx); err != nil {
		return err
	}
	return p.settled(ctx)
}

// atOnce calls do for each number below n, a bounded number of times at once.
func atOnce(n int, do func(int) error) error {
	errs := make([]error, n)
	places := make(chan struct{}, setupWorkers)
	var wg sync.WaitGroup
	for i := range n {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			errs[i] = do(i)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// makeRoom lets the nodes take more pods than they have been filled with.
func (p *Play) makeRoom(ctx context.Context) error {
	if p.Room == 0 {
		return nil
	}
	pods := p.PodsPerNode + p.Room
	patch := fmt.Appendf(nil, `{"status":{"capacity":{"pods":"%d"},"allocatable":{"pods":"%d"}}}`, pods, pods)
	nodes := p.stage.client.CoreV1().Nodes()
	return atOnce(len(p.Nodes), func(i int) error {
		_, err := nodes.Patch(ctx, p.Nodes[i], types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}

// settled waits until the disruption controller has counted every pod.
func (p *Play) settled(ctx context.Context) error {
	if p.MaxUnavailable == nil {
		return nil
	}
	expected := p.Pods()
	if p.Held {
		expected++
		if err := p.hold(ctx); err != nil {
			return err
		}
	}
	if err := p.Observer.Await(ctx, func(seen Seen) bool { return seen.Counted == p.Pods() && seen.Expected == expected }); err != nil {
		return fmt.Errorf("waiting for the budget to count %d pods: %w", p.Pods(), err)
	}
	return nil
}

func (p *Play) namespace(ctx context.Context) error {
	core := p.stage.client.CoreV1()
	meta := metav1.ObjectMeta{Name: p.name}
	if _, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return err
	}
	// Without it the API server takes no pods.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := core.ServiceAccounts(p.name).Create(ctx, account, metav1.CreateOptions{})
	return err
}

// node creates a Node that is ready and takes no pods but the play's.
func (p *Play) node(ctx context.Context, name string, room int) error {
	nodes := p.stage.client.CoreV1().Nodes()
	quantity := resource.MustParse
	has := corev1.ResourceList{
		corev1.ResourcePods: *resource.NewQuantity(int64(room), resource.DecimalSI), corev1.ResourceCPU: quantity("64"), corev1.ResourceMemory: quantity("256Gi"),
	}
	now := metav1.Now()
	_, err := nodes.Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{playLabel: p.name, corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Capacity: has, Allocatable: has, Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now,
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	// The API server taints every new node as not ready; the controller that takes that away does not run here.
	_, err = nodes.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
	return err
}

func (p *Play) budget(ctx context.Context, app int) error {
	if p.MaxUnavailable == nil {
		return nil
	}
	_, err := p.stage.client.PolicyV1().PodDisruptionBudgets(p.name).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: p.appName(app)},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: p.MaxUnavailable, Selector: &metav1.LabelSelector{MatchLabels: p.labelsOf(app)},
		},
	}, metav1.CreateOptions{})
	return err
}

// appName names a workload and its budget. The first one is named after the play.
func (p *Play) appName(i int) string {
	if i == 0 {
		return p.name
	}
	return fmt.Sprintf("%s-app-%d", p.name, i)
}

func (p *Play) labelsOf(app int) map[string]string {
	labels := p.labels()
	labels[appLabel] = p.appName(app)
	return labels
}

func (p *Play) labels() map[string]string { return map[string]string{playLabel: p.name} }

// Close takes everything away but the namespace, which nothing would finish.
func (p *Play) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), setupTimeout+time.Duration(p.Pods())*setupOfPod)
	defer cancel()
	var errs []error
	now, all := int64(0), metav1.ListOptions{LabelSelector: playLabel + "=" + p.name}
	gone := metav1.DeleteOptions{GracePeriodSeconds: &now}
	c := p.stage.client
	errs = append(errs,
		c.AppsV1().ReplicaSets(p.name).DeleteCollection(ctx, gone, all),
		c.AppsV1().StatefulSets(p.name).DeleteCollection(ctx, gone, all),
		c.PolicyV1().PodDisruptionBudgets(p.name).DeleteCollection(ctx, gone, metav1.ListOptions{}),
	)
	// A controller may create a last pod meanwhile.
	errs = append(errs, p.clear(ctx, gone), c.CoreV1().Nodes().DeleteCollection(ctx, gone, all))
	if p.end != nil {
		p.end()
	}
	return errors.Join(errs...)
}

// clear deletes pods until none is left.
func (p *Play) clear(ctx context.Context, gone metav1.DeleteOptions) error {
	pods := p.stage.client.CoreV1().Pods(p.name)
	for {
		if err := pods.DeleteCollection(ctx, gone, metav1.ListOptions{}); err != nil {
			return err
		}
		left, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil || len(left.Items) == 0 {
			return err
		}
		if !backoff.Sleep(ctx, time.Second) {
			return ctx.Err()
		}
	}
}
