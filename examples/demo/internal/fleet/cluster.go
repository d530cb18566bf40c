// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/configsync/v1alpha1"
)

const (
	// RunLabel is on every object of the demo. Its value is the run's.
	RunLabel = "belay.dev/demo-run"
	// NodePrefix begins the name of every Node and NodeConfig of the demo.
	NodePrefix = "belay-demo-"

	callTimeout = 5 * time.Second
	waitTimeout = 60 * time.Second
	pollEvery   = 100 * time.Millisecond
	clientQPS   = 100
)

var (
	nodes      = corev1.SchemeGroupVersion.WithResource("nodes")
	namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// made is an object of this run.
type made struct {
	resource        schema.GroupVersionResource
	namespace, name string
	uid             types.UID
}

func (m made) String() string { return fmt.Sprintf("%s %q", m.resource.Resource, m.name) }

// A Cluster is the demo's part of a cluster.
type Cluster struct {
	client    dynamic.Interface
	run       string
	namespace string
	nodes     []made // NodeConfigs
	started   bool   // something may have been created
}

// Connect returns the demo's part of the cluster that the kubeconfig names, which is empty yet. run is the value of the label.
func Connect(kubeconfig, run string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = clientQPS, clientQPS
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client from the kubeconfig %q: %w", kubeconfig, err)
	}
	return &Cluster{client: client, run: run, namespace: NodePrefix + run}, nil
}

// NodeName is the name of the n-th node, from 1.
func NodeName(n int) string { return fmt.Sprintf("%s%d", NodePrefix, n) }

// SetUp creates the resource definition where it is missing, the namespace, the Nodes and their NodeConfigs.
func (c *Cluster) SetUp(ctx context.Context, count int) error {
	if err := c.ensureDefinitions(ctx); err != nil {
		return err
	}
	if _, err := c.create(ctx, namespaces, "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}); err != nil {
		return err
	}
	for n := range count {
		if err := c.addNode(ctx, NodeName(n+1)); err != nil {
			return err
		}
	}
	return nil
}

// addNode creates a Node, tainted so that no pod comes to a machine that can't run one, and its NodeConfig, which goes with it.
func (c *Cluster) addNode(ctx context.Context, name string) error {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.NodeSpec{
			Unschedulable: true,
			Taints:        []corev1.Taint{{Key: RunLabel, Value: c.run, Effect: corev1.TaintEffectNoExecute}},
		},
	}
	owner, err := c.create(ctx, nodes, "", node)
	if err != nil {
		return err
	}
	config := &v1alpha1.NodeConfig{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Node", Name: name, UID: owner.uid},
	}}}
	m, err := c.create(ctx, v1alpha1.NodeConfigsResource, "", config)
	if err != nil {
		return err
	}
	c.nodes = append(c.nodes, m)
	return nil
}

// create creates an object with the run's label. An object of that name that exists already is an error: it is not this run's. It
// doesn't end with ctx before the server has answered, so that [Cluster.Remove] sees all that there is.
func (c *Cluster) create(ctx context.Context, r schema.GroupVersionResource, namespace string, object runtime.Object) (made, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return made{}, fmt.Errorf("encoding %s: %w", r.Resource, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(r.GroupVersion().WithKind(kind(r)))
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[RunLabel] = c.run
	u.SetLabels(labels)
	if err := ctx.Err(); err != nil {
		return made{}, fmt.Errorf("creating %s %q: %w", r.Resource, u.GetName(), err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	c.started = true
	got, err := c.client.Resource(r).Namespace(namespace).Create(ctx, u, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return made{}, fmt.Errorf("creating %s %q: it exists and is not this run's, so the demo leaves it alone; "+
			"what a killed demo left behind is found with -l %s", r.Resource, u.GetName(), RunLabel)
	}
	if err != nil {
		return made{}, fmt.Errorf("creating %s %q: %w", r.Resource, u.GetName(), err)
	}
	return made{r, namespace, got.GetName(), got.GetUID()}, nil
}

// kind is the kind of the objects of a resource.
func kind(r schema.GroupVersionResource) string {
	switch r {
	case nodes:
		return "Node"
	case namespaces:
		return "Namespace"
	case configMaps:
		return "ConfigMap"
	case crds:
		return "CustomResourceDefinition"
	default:
		return v1alpha1.NodeConfigKind
	}
}

// ensureDefinitions creates those resource definitions that the cluster doesn't have, and waits until they are served.
func (c *Cluster) ensureDefinitions(ctx context.Context) error {
	for _, manifest := range v1alpha1.CRDs() {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal(manifest, &u.Object); err != nil {
			return fmt.Errorf("reading the resource definition: %w", err)
		}
		found, err := c.exists(ctx, crds, u.GetName())
		if err != nil {
			return err
		}
		if found {
			continue
		}
		if _, err := c.create(ctx, crds, "", &u); err != nil {
			return err
		}
	}
	return c.wait(ctx, "NodeConfigs are served", func(ctx context.Context) (bool, error) {
		_, err := c.client.Resource(v1alpha1.NodeConfigsResource).List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

func (c *Cluster) exists(ctx context.Context, r schema.GroupVersionResource, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := c.client.Resource(r).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for %s %q: %w", r.Resource, name, err)
	}
	return true, nil
}

// wait asks again and again, with a deadline for each question and one for all.
func (c *Cluster) wait(ctx context.Context, what string, ok func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		call, done := context.WithTimeout(ctx, callTimeout)
		yes, err := ok(call)
		done()
		if err != nil || yes {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
