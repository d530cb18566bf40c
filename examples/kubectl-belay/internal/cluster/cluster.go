// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	drainkube "github.com/belayproject/belay/drain/kube"
	drainsettings "github.com/belayproject/belay/examples/internal/drain/settings"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/settings"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

const (
	// callTime bounds one call, seeTime the look at all nodes and pods.
	callTime = 30 * time.Second
	seeTime  = time.Minute
	// lookEvery is the pause between two looks whether something has come to its end.
	lookEvery = 50 * time.Millisecond
)

// A Cluster is an API server.
type Cluster struct {
	// Host is its address, for people.
	Host   string
	core   kubernetes.Interface
	client dynamic.Interface
	// callTime bounds one call.
	callTime time.Duration
}

// Connect reads the kubeconfig as kubectl does. Nothing is asked of the API server yet.
func Connect(s drainsettings.Cluster) (*Cluster, error) {
	config, err := Config(s)
	if err != nil {
		return nil, err
	}
	return Of(config)
}

// Config reads the kubeconfig as kubectl does.
func Config(s drainsettings.Cluster) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: s.Context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			err = errors.New("there is none: give --kubeconfig, or set $KUBECONFIG")
		}
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return config, nil
}

// Of is the cluster of a configuration.
func Of(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.UserAgent, config.QPS = "kubectl-belay", -1 // the API server's own fairness bounds a person
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return &Cluster{Host: config.Host, core: core, client: client, callTime: callTime}, nil
}

// list reads all objects of a resource of this project.
func list[T any](ctx context.Context, c *Cluster, resource schema.GroupVersionResource) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTime)
	defer cancel()
	found, err := c.client.Resource(resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the cluster has no %s: is belay installed? \"kubectl belay doctor\" looks", resource.GroupResource())
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
	}
	all := make([]T, len(found.Items))
	for i := range found.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Items[i].Object, &all[i]); err != nil {
			return nil, fmt.Errorf("reading %s %q: %w", resource.Resource, found.Items[i].GetName(), err)
		}
	}
	return all, nil
}

// Rollouts are all Rollouts.
func (c *Cluster) Rollouts(ctx context.Context) ([]v1alpha1.Rollout, error) {
	return list[v1alpha1.Rollout](ctx, c, v1alpha1.RolloutsResource)
}

// Revisions are all Revisions.
func (c *Cluster) Revisions(ctx context.Context) ([]v1alpha1.Revision, error) {
	return list[v1alpha1.Revision](ctx, c, v1alpha1.RevisionsResource)
}

// Config is the data of a ConfigMap, if whoever asks may read it.
func (c *Cluster) Config(ctx context.Context, namespace, name string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTime)
	defer cancel()
	m, err := c.core.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, wrap("reading ConfigMap "+namespace+"/"+name, err)
	}
	return m.Data, nil
}

// See reads all that is decided on, by a controller that was told this. It needs the rights of the ClusterRole belay-viewer; the error names what is missing first.
func (c *Cluster) See(ctx context.Context, told settings.Controller) (*view.Seen, error) {
	s, missing := c.see(ctx, told)
	for _, kind := range kinds() {
		if err := missing[kind]; err != nil {
			return nil, err
		}
	}
	return s, nil
}

// kinds are those that see lists.
func kinds() []string {
	return []string{"Rollouts", "Revisions", "NodeShadows", "DisruptionLedgers", "PodDisruptionBudgets", "Nodes", "Pods"}
}

// see reads what it may, and says what it may not.
func (c *Cluster) see(ctx context.Context, told settings.Controller) (*view.Seen, map[string]error) {
	s, missing := &view.Seen{OwnNode: told.OwnNode}, map[string]error{}
	if told.MaxUnavailable > 0 {
		s.Caps = []protocol.Cap{{Max: told.MaxUnavailable}}
	}
	note := func(kind string, err error) {
		if err != nil {
			missing[kind] = err
		}
	}
	var err error
	s.Rollouts, err = c.Rollouts(ctx)
	note("Rollouts", err)
	s.Revisions, err = c.Revisions(ctx)
	note("Revisions", err)
	s.Shadows, err = list[v1alpha1.NodeShadow](ctx, c, v1alpha1.NodeShadowsResource)
	note("NodeShadows", err)
	s.Ledgers, err = list[v1alpha1.DisruptionLedger](ctx, c, v1alpha1.DisruptionLedgersResource)
	note("DisruptionLedgers", err)
	s.Budgets, err = c.budgets(ctx)
	note("PodDisruptionBudgets", err)
	if err := c.work(ctx, s, told); err != nil {
		note("Nodes", err)
		note("Pods", err)
	}
	s.Now = time.Now()
	return s, missing
}

func (c *Cluster) budgets(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTime)
	defer cancel()
	found, err := c.core.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, wrap("listing poddisruptionbudgets", err)
	}
	return found.Items, nil
}

// work reads Nodes, their pods, and what health is judged by: with the informers that the controller uses, so that the judgement is the same.
func (c *Cluster) work(ctx context.Context, s *view.Seen, told settings.Controller) error {
	if err := c.mayList(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, seeTime)
	defer cancel()
	factory := drainkube.NewFactory(c.core, drainkube.CacheOptions{})
	var bad kube.HealthOptions
	for _, kind := range told.BadConditions {
		bad.Bad = append(bad.Bad, corev1.NodeConditionType(kind))
	}
	health, err := kube.NewHealth(kube.FactoryInformers(factory), bad)
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for !health.Synced() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("nodes and pods were not seen whole within %s: may you watch them? %w", seeTime, ctx.Err())
		case <-look.C:
		}
	}
	if s.Nodes, err = factory.Core().V1().Nodes().Lister().List(labels.Everything()); err != nil {
		return err
	}
	if s.Pods, err = factory.Core().V1().Pods().Lister().List(labels.Everything()); err != nil {
		return err
	}
	s.Health = func(n *corev1.Node) rollout.Verdict {
		return health.Verdict(context.WithoutCancel(ctx), controller.Node{Name: n.Name, UID: string(n.UID)}, "")
	}
	return nil
}

// mayList asks for one object of each kind: an informer would wait for a right that is missing.
func (c *Cluster) mayList(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.callTime)
	defer cancel()
	one := metav1.ListOptions{Limit: 1}
	for _, try := range []struct {
		what string
		list func() error
	}{
		{"nodes", func() error { _, err := c.core.CoreV1().Nodes().List(ctx, one); return err }},
		{"pods", func() error { _, err := c.core.CoreV1().Pods("").List(ctx, one); return err }},
		{"deployments", func() error { _, err := c.core.AppsV1().Deployments("").List(ctx, one); return err }},
		{"statefulsets", func() error { _, err := c.core.AppsV1().StatefulSets("").List(ctx, one); return err }},
		{"daemonsets", func() error { _, err := c.core.AppsV1().DaemonSets("").List(ctx, one); return err }},
	} {
		if err := try.list(); err != nil {
			return wrap("listing "+try.what, err)
		}
	}
	return nil
}

func wrap(doing string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
