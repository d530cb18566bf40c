// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

const (
	// Name is that of the Rollout, of its disruption domain, and of the nodes' group.
	Name = "fleet"
	// Namespace holds the work and the configs, and the Leases of controllers.
	Namespace = "belay-system"

	// podsPerNode is how much work there is on average, nodesPerApp for how many nodes one Deployment has it: a budget is counted anew by a controller of the
	// cluster for each eviction, and one over thousands of pods is what a drain would wait for. budget is how much of each may be away at a time.
	podsPerNode = 2
	nodesPerApp = 50
	budget      = "34%"

	// joining is how many nodes are created at a time.
	joining     = 8
	callTimeout = 10 * time.Second
	pollEvery   = 200 * time.Millisecond
	// workTime bounds the wait for the work, besides a part for each node.
	workTime, workTimeANode = time.Minute, 300 * time.Millisecond

	kwokAnnotation = "kwok.x-k8s.io/node"
	canaryLabel    = "belay.dev/demo-canary"
)

// A Fleet is nodes with work on them, and a Rollout.
type Fleet struct {
	// Nodes are the names of all, the canaries first.
	Nodes []string
	// Canaries is how many of them get a revision first.
	Canaries int

	core   kubernetes.Interface
	client dynamic.Interface
	wakes  chan struct{}
	seen   seen
}

// Connect returns a fleet of so many nodes, which are not there yet.
func Connect(config *rest.Config, nodes int) (*Fleet, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	f := &Fleet{Canaries: max(1, nodes/25), wakes: make(chan struct{}, 1)}
	for i := range nodes {
		f.Nodes = append(f.Nodes, fmt.Sprintf("node-%04d", i))
	}
	var err error
	if f.core, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if f.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return f, f.seen.watch(f.client)
}

// SetUp makes the definitions, the namespace and the nodes, and watches from then on until ctx ends.
func (f *Fleet) SetUp(ctx context.Context) error {
	if err := f.define(ctx); err != nil {
		return err
	}
	err := f.call(ctx, func(ctx context.Context) error {
		_, err := f.core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating the namespace %q: %w", Namespace, err)
	}
	var errs [joining]error
	var wg sync.WaitGroup
	for first := range joining {
		wg.Go(func() {
			for i := first; i < len(f.Nodes) && errs[first] == nil; i += joining {
				errs[first] = f.Join(ctx, f.Nodes[i], i < f.Canaries)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// Leave removes a node.
func (f *Fleet) Leave(ctx context.Context, name string) error {
	err := f.call(ctx, func(ctx context.Context) error {
		return f.core.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	})
	if err != nil {
		return fmt.Errorf("deleting node %q: %w", name, err)
	}
	return nil
}

// Join makes a node that kwok plays.
func (f *Fleet) Join(ctx context.Context, name string, canary bool) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{kwokAnnotation: "fake"},
		Labels: map[string]string{corev1.LabelHostname: name, canaryLabel: fmt.Sprint(canary)},
	}}
	err := f.call(ctx, func(ctx context.Context) error {
		_, err := f.core.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating node %q: %w", name, err)
	}
	return nil
}

// Apps is how many Deployments AddWork makes.
func (f *Fleet) Apps() int { return (len(f.Nodes) + nodesPerApp - 1) / nodesPerApp }

// AddWork makes Deployments, each with a budget of its own, and waits until their pods run. tell is told how many do.
func (f *Fleet) AddWork(ctx context.Context, tell func(ready, of int)) error {
	left := podsPerNode * len(f.Nodes)
	all, apps := left, f.Apps()
	for i := range apps {
		replicas := left / (apps - i)
		left -= replicas
		if err := f.addApp(ctx, fmt.Sprintf("web-%d", i+1), int32(replicas)); err != nil { //nolint:gosec // it is small
			return fmt.Errorf("creating the work: %w", err)
		}
	}
	within := workTime + time.Duration(len(f.Nodes))*workTimeANode
	return poll(ctx, "the work runs", within, func(ctx context.Context) (bool, error) {
		list, err := f.core.AppsV1().Deployments(Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		ready := 0
		for i := range list.Items {
			ready += int(list.Items[i].Status.ReadyReplicas)
		}
		tell(ready, all)
		return ready == all, nil
	})
}

// addApp makes one Deployment and its budget.
func (f *Fleet) addApp(ctx context.Context, name string, replicas int32) error {
	labels := map[string]string{"app": name}
	return f.call(ctx, func(ctx context.Context) error {
		_, err1 := f.core.AppsV1().Deployments(Namespace).Create(ctx, deployment(name, replicas, labels), metav1.CreateOptions{})
		_, err2 := f.core.PolicyV1().PodDisruptionBudgets(Namespace).Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels}, MaxUnavailable: new(intstr.FromString(budget)),
			},
		}, metav1.CreateOptions{})
		return errors.Join(err1, err2)
	})
}

func deployment(name string, replicas int32, labels map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "web", Image: "example.com/web"}}, TerminationGracePeriodSeconds: new(int64(1)),
		}},
	}}
}

// define makes the resource definitions and waits until they are served.
func (f *Fleet) define(ctx context.Context) error {
	for _, manifest := range v1alpha1.CRDs() {
		u, err := decode(manifest)
		if err != nil {
			return err
		}
		if err := f.create(ctx, definitions, "", u); err != nil {
			return err
		}
	}
	return poll(ctx, "the resources are served", workTime, func(ctx context.Context) (bool, error) {
		for _, r := range []resource{v1alpha1.RolloutsResource, v1alpha1.RevisionsResource, v1alpha1.NodeShadowsResource, v1alpha1.DisruptionLedgersResource} {
			if _, err := f.client.Resource(r).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
				return false, nil //nolint:nilerr // not yet
			}
		}
		return true, nil
	})
}

// call bounds a call of the API server.
func (*Fleet) call(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return do(ctx)
}

// poll asks again and again, with a deadline for each question and one for all.
func poll(ctx context.Context, what string, within time.Duration, ok func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		call, done := context.WithTimeout(ctx, callTimeout)
		yes, err := ok(call)
		done()
		if yes {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
