// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/v1alpha1"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// A bed is a control plane with the definitions, a provider in memory whose kubelets register, and a controller.
type bed struct {
	t         *testing.T
	namespace string
	core      kubernetes.Interface
	dynamic   dynamic.Interface
	cloud     *machinetest.Memory
	groups    dynamic.Interface // of sets and deployments
	machines  kube.Machines
	nodes     kube.Nodes
	options   controller.Options
	drains    kube.Drains
	// patient kubelets go on when their server does not answer.
	patient bool
}

func newBed(t *testing.T) *bed {
	t.Helper()
	env := shared.Env(t)
	return bedOn(t, env, env)
}

// bedOn has its machines on one control plane, and their Nodes on another.
func bedOn(t *testing.T, management, workload *testenv.Env) *bed {
	t.Helper()
	b := &bed{t: t, namespace: management.Namespace(t), cloud: &machinetest.Memory{Polls: 1}}
	b.must(management.InstallCRDs(b.ctx(), v1alpha1.CRDs()...))
	here, there := management.Config(), workload.Config()
	here.QPS, there.QPS = -1, -1
	b.core, b.dynamic = kubernetes.NewForConfigOrDie(there), dynamic.NewForConfigOrDie(here)
	b.groups = b.dynamic
	var err error
	b.machines, err = kube.NewMachines(b.dynamic, b.namespace)
	b.must(err)
	factory := informers.NewSharedInformerFactory(b.core, 0)
	b.nodes, err = kube.NewNodes(b.core, factory.Core().V1().Nodes().Informer(), nil)
	b.must(err)
	factory.Start(t.Context().Done())
	b.options = controller.Options{
		Cluster: b.namespace, Machines: b.machines, Nodes: b.nodes, Provider: b.cloud, Secrets: kube.Secrets{Client: kubernetes.NewForConfigOrDie(here)}, Undrained: true,
		ShowEvery: time.Second,
	}
	return b
}

// run runs a controller and the kubelets until the test ends.
func (b *bed) run() {
	b.t.Helper()
	ctl, err := controller.New(b.options)
	b.must(err)
	ctx, stop := context.WithCancel(b.t.Context())
	ended := make(chan error, 2)
	go func() {
		ended <- kube.Run(ctx, kube.Loop{Controller: ctl, Machines: b.machines, Nodes: b.nodes, Drains: b.drains, SurveyEvery: 2 * time.Second})
	}()
	go func() { ended <- b.kubelets(ctx) }()
	b.t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				b.t.Error(err)
			}
		}
	})
}

// kubelets registers a Node for each running instance and reports what it was asked to be, until ctx ends.
func (b *bed) kubelets(ctx context.Context) error {
	for backoff.Sleep(ctx, 100*time.Millisecond) {
		for _, i := range b.cloud.Instances() {
			if i.State == provider.Running {
				if err := b.register(ctx, i); err != nil && ctx.Err() == nil && !b.patient {
					return err
				}
			}
		}
	}
	return nil
}

func (b *bed) register(ctx context.Context, i provider.Instance) error {
	made, _ := b.cloud.Made(i.Token)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + i.Token}, Spec: corev1.NodeSpec{
		ProviderID: i.ProviderID, Taints: []corev1.Taint{{Key: kube.UninitializedTaint, Effect: corev1.TaintEffectNoExecute}},
	}}
	nodes := b.core.CoreV1().Nodes()
	is, err := nodes.Create(ctx, n, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		is, err = nodes.Get(ctx, n.Name, metav1.GetOptions{})
	}
	if err != nil {
		return client(err)
	}
	if is.Status.NodeInfo.KubeletVersion == made.Desired.Versions.Kubelet && len(is.Status.Conditions) > 0 {
		return nil
	}
	is.Status.NodeInfo.KubeletVersion, is.Status.NodeInfo.ContainerRuntimeVersion = made.Desired.Versions.Kubelet, "containerd://2.1.4"
	is.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	_, err = nodes.UpdateStatus(ctx, is, metav1.UpdateOptions{})
	return client(err)
}

// client leaves out what a kubelet meets by the way.
func client(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) ctx() context.Context {
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	b.t.Cleanup(cancel)
	return ctx
}

func (b *bed) client() dynamic.ResourceInterface {
	return b.dynamic.Resource(v1alpha1.MachinesResource).Namespace(b.namespace)
}

// create applies a machine as a user does.
func (b *bed) create(name string, spec map[string]any) {
	b.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind(v1alpha1.MachineKind)
	o.SetName(name)
	_, err := b.client().Create(b.ctx(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	b.must(err)
}

// edit is a merge patch of a machine.
func (b *bed) edit(name, patch string) {
	b.t.Helper()
	_, err := b.client().Patch(b.ctx(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	b.must(err)
}

func (b *bed) delete(name string) {
	b.t.Helper()
	b.must(b.client().Delete(b.ctx(), name, metav1.DeleteOptions{}))
}

// until waits for something to be true of a machine; nil means that it is gone.
func (b *bed) until(name, what string, is func(m *v1alpha1.Machine) bool) (at *v1alpha1.Machine) {
	b.t.Helper()
	err := wait.PollUntilContextTimeout(b.t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		u, err := b.client().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			at = nil
			return is(nil), nil
		}
		if err != nil {
			return false, err
		}
		at = &v1alpha1.Machine{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, at); err != nil {
			return false, err
		}
		return is(at), nil
	})
	if err != nil {
		b.t.Fatalf("machine %q is not %s: %v; its status: %+v", name, what, err, at)
	}
	return at
}

func (b *bed) running(name string) *v1alpha1.Machine {
	b.t.Helper()
	return b.until(name, "running", func(m *v1alpha1.Machine) bool {
		return m != nil && m.Status.Phase == v1alpha1.MachinePhase(machine.PhaseRunning) && m.Status.ObservedGeneration == m.Generation && m.Status.Update == nil
	})
}

func (b *bed) gone(name string) {
	b.t.Helper()
	b.until(name, "gone", func(m *v1alpha1.Machine) bool { return m == nil })
}

func (b *bed) deployments() dynamic.ResourceInterface {
	return b.dynamic.Resource(v1alpha1.MachineDeploymentsResource).Namespace(b.namespace)
}

// eventually waits for something that needs no machine.
func (b *bed) eventually(what string, is func() (bool, error)) {
	b.t.Helper()
	err := wait.PollUntilContextTimeout(b.t.Context(), 100*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) { return is() })
	if err != nil {
		b.t.Fatalf("waiting for %s: %v", what, err)
	}
}
