// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machineproof_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/providertest"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// poolSize is how many machines the deployment is scaled to.
const poolSize = 25

// A pool is a deployment of machines of the fake cloud, whose Nodes kwok plays.
type pool struct {
	t           *testing.T
	env         *testenv.Env
	namespace   string
	core        kubernetes.Interface
	deployments dynamic.ResourceInterface
	machines    dynamic.ResourceInterface
	admin       *providertest.Admin
}

// R-MA-09 and R-MA-11: a deployment goes from 0 to many and back to 0 by its replicas alone. Its Nodes are those of kwok, which reports what they run and keeps
// their Leases; the status of each machine has what its Node reports, and nothing is left in the end.
func TestPoolOfKwokNodes(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for _, replicas := range []int{poolSize, 0} {
		p.scale(replicas)
		p.eventually(fmt.Sprintf("%d machines", replicas), func() error { return p.has(replicas) })
	}
	left, err := p.admin.Inventory(t.Context())
	if err != nil || left.Instances != 0 || left.Disks != 0 {
		t.Errorf("R-MA-11: the cloud still has %d instances and %d disks (%v)", left.Instances, left.Disks, err)
	}
	if creates := left.Calls["Create"]; creates < poolSize {
		t.Errorf("the cloud has seen %d calls of Create, want at least %d: %v", creates, poolSize, left.Calls)
	}
}

func newPool(t *testing.T) *pool {
	t.Helper()
	server, err := providertest.NewServer(providertest.ServerOptions{Dir: t.TempDir()})
	check(t, err)
	cloud := httptest.NewServer(server)
	t.Cleanup(cloud.Close)
	env := testenv.Start(t, testenv.Options{With: []testenv.Component{testenv.Kwok}})
	check(t, env.InstallCRDs(t.Context(), v1alpha1.CRDs()...))
	config := env.Config()
	config.QPS = -1
	objects := dynamic.NewForConfigOrDie(config)
	p := &pool{t: t, env: env, namespace: env.Namespace(t), core: kubernetes.NewForConfigOrDie(config)}
	p.deployments = objects.Resource(v1alpha1.MachineDeploymentsResource).Namespace(p.namespace)
	p.machines = objects.Resource(v1alpha1.MachinesResource).Namespace(p.namespace)
	p.admin, err = providertest.NewAdmin(providertest.Options{URL: cloud.URL})
	check(t, err)
	clouds, err := providertest.New(providertest.Options{URL: cloud.URL})
	check(t, err)
	p.create()
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() { stop(); wg.Wait() })
	p.control(ctx, &wg, objects, clouds)
	wg.Go(func() { p.join(ctx) })
	return p
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// control runs the controllers of machines and of what makes them, until ctx ends.
func (p *pool) control(ctx context.Context, wg *sync.WaitGroup, objects dynamic.Interface, cloud provider.Provider) {
	p.t.Helper()
	factory := informers.NewSharedInformerFactory(p.core, 0)
	nodes, err := kube.NewNodes(p.core, factory.Core().V1().Nodes().Informer(), nil)
	check(p.t, err)
	factory.Start(ctx.Done())
	machines, err := kube.NewMachines(objects, p.namespace)
	check(p.t, err)
	one, err := controller.New(controller.Options{
		Cluster: p.namespace, Machines: machines, Nodes: nodes, Provider: cloud, Undrained: true, ShowEvery: time.Second,
	})
	check(p.t, err)
	groups, err := kube.NewGroups(objects, p.namespace, machines)
	check(p.t, err)
	doctor, err := kube.NewDoctor(nodes)
	check(p.t, err)
	all, err := controller.NewGroups(controller.GroupOptions{Cluster: p.namespace, Groups: groups, Doctor: doctor, Provider: cloud})
	check(p.t, err)
	run := func(loop func() error) {
		wg.Go(func() {
			if err := loop(); err != nil && ctx.Err() == nil {
				p.t.Error(err)
			}
		})
	}
	run(func() error {
		return kube.Run(ctx, kube.Loop{Controller: one, Machines: machines, Nodes: nodes, SurveyEvery: 2 * time.Second})
	})
	run(func() error {
		return kube.RunGroups(ctx, kube.GroupLoop{Controller: all, Groups: groups, Machines: machines, Nodes: nodes})
	})
}

// join makes a Node that kwok plays for each instance that runs, until ctx ends: what an image does that has a kubelet.
func (p *pool) join(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for joined := map[string]bool{}; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		hosts, err := p.admin.Instances(ctx)
		if err != nil {
			continue
		}
		for _, h := range hosts {
			if h.State != provider.Running || joined[h.Token] {
				continue
			}
			_, err := p.env.CreateNode(ctx, "node-"+h.Token, testenv.KwokNode, func(n *corev1.Node) { n.Spec.ProviderID = h.ProviderID })
			joined[h.Token] = err == nil || apierrors.IsAlreadyExists(err)
		}
	}
}

func (p *pool) create() {
	p.t.Helper()
	labels := map[string]any{"pool": "kwok"}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"providerConfig": map[string]any{
				"apiVersion": providertest.APIVersion, "kind": providertest.KindName, "size": "small", "startMilliseconds": int64(100),
			},
			"deletion": map[string]any{"diskPolicy": "Destroy"},
		}},
	}}}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind(v1alpha1.MachineDeploymentKind)
	o.SetName("kwok")
	_, err := p.deployments.Create(p.t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	check(p.t, err)
}

func (p *pool) scale(replicas int) {
	p.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := p.deployments.Patch(p.t.Context(), "kwok", types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	check(p.t, err)
}

func (p *pool) eventually(what string, is func() error) {
	p.t.Helper()
	if err := testproc.Poll(3*time.Minute, is); err != nil {
		p.t.Fatalf("R-MA-11: there are not %s: %v", what, err)
	}
}

// has returns an error while there are not so many machines that run, each with a Node of its own.
func (p *pool) has(replicas int) error {
	ctx := p.t.Context()
	nodes, err := p.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	all, err := p.machines.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(nodes.Items) != replicas || len(all.Items) != replicas {
		return fmt.Errorf("there are %d Nodes and %d machines, want %d", len(nodes.Items), len(all.Items), replicas)
	}
	reported := map[string]string{}
	for _, n := range nodes.Items {
		reported[n.Name] = n.Status.NodeInfo.KubeletVersion
	}
	for _, u := range all.Items {
		m := &v1alpha1.Machine{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, m); err != nil {
			return err
		}
		if m.Status.Phase != "Running" || m.Status.NodeRef == nil || m.Status.Versions == nil {
			return fmt.Errorf("machine %q is %s", m.Name, m.Status.Phase)
		}
		if v := reported[m.Status.NodeRef.Name]; v != m.Status.Versions.Kubelet || !strings.Contains(v, "kwok") {
			return fmt.Errorf("machine %q says %q, its Node reports %q", m.Name, m.Status.Versions.Kubelet, v)
		}
		delete(reported, m.Status.NodeRef.Name) // no Node is that of two
	}
	return nil
}
