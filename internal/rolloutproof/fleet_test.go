// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// domain is the disruption domain of all tests: each has a control plane of its own.
const domain = "proof"

// A fleet is nodes with work and agents on a control plane, and one Rollout.
type fleet struct {
	t      *testing.T
	env    *testenv.Env
	core   kubernetes.Interface
	client dynamic.Interface
	crew   *crew
	size   int
	cap    int
	truth  *truth
	before int64 // the epoch of the ledger before the rollout under way
}

// newFleet makes nodes of which half as many may be away as there are in cap, and a Deployment with two pods for each of them whose budget lets a
// fifth of the pods go at a time.
func newFleet(t *testing.T, size, limit int, takes time.Duration) *fleet {
	t.Helper()
	fast := []string{"--kube-api-qps=500", "--kube-api-burst=500"}
	env := testenv.Start(t, testenv.Options{
		With: []testenv.Component{testenv.ControllerManager, testenv.Scheduler, testenv.Kwok},
		Args: map[testenv.Component][]string{
			testenv.ControllerManager: append([]string{"--node-monitor-grace-period=30m"}, fast...), testenv.Scheduler: fast,
		},
	})
	must(t, env.InstallCRDs(t.Context(), v1alpha1.CRDs()...))
	config := env.Config()
	config.QPS = -1
	f := &fleet{
		t: t, env: env, core: kubernetes.NewForConfigOrDie(config), client: dynamic.NewForConfigOrDie(config), size: size, cap: limit,
		crew: &crew{agents: map[string]*machine{}, takes: takes},
	}
	for i := range size {
		f.addNode(fmt.Sprintf("node-%03d", i))
	}
	f.addWork()
	f.truth = watchTruth(f)
	go f.crew.run(t.Context(), f.client)
	return f
}

func (f *fleet) addNode(name string) {
	f.t.Helper()
	n, err := f.env.CreateNode(f.t.Context(), name, testenv.KwokNode, func(n *corev1.Node) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels["fleet"] = domain
	})
	must(f.t, err)
	f.crew.add(f.t, f.client, name, string(n.UID))
}

func (f *fleet) addWork() {
	f.t.Helper()
	labels := map[string]string{"app": "web"}
	apps, budgets := f.core.AppsV1().Deployments(metav1.NamespaceDefault), f.core.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault)
	_, err := apps.Create(f.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2 * f.size)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "web", Image: "example.com/web"}}, TerminationGracePeriodSeconds: new(int64(1)),
			}},
		},
	}, metav1.CreateOptions{})
	must(f.t, err)
	_, err = budgets.Create(f.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, MaxUnavailable: new(intstr.FromString("20%")),
		},
	}, metav1.CreateOptions{})
	must(f.t, err)
	eventually(f.t, "the work runs", func(ctx context.Context) error {
		d, err := apps.Get(ctx, "web", metav1.GetOptions{})
		if err == nil && int(d.Status.ReadyReplicas) != 2*f.size {
			err = fmt.Errorf("%d of %d pods are ready", d.Status.ReadyReplicas, 2*f.size)
		}
		return err
	})
}

// revision makes a Revision for nodes that are drained, and returns how a Rollout names it.
func (f *fleet) revision(name string) v1alpha1.PinnedRevision {
	f.t.Helper()
	pinned := v1alpha1.PinnedRevision{Name: name, Digest: v1alpha1.OpaqueDigest(name)}
	f.create(v1alpha1.RevisionsResource, v1alpha1.RevisionKind, name, &v1alpha1.Revision{
		Spec: v1alpha1.RevisionSpec{Digest: pinned.Digest, Opaque: name},
	})
	return pinned
}

// begin has the fleet brought to a revision.
func (f *fleet) begin(name string) {
	f.t.Helper()
	pinned := f.revision(name)
	spec := v1alpha1.RolloutSpec{
		Domain: domain, Revision: pinned, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": domain}},
		Caps: []v1alpha1.Cap{{Scope: v1alpha1.Scope(rollout.Total), Max: intstr.FromInt(f.cap)}},
	}
	if _, err := f.rollout(f.t.Context()); err != nil {
		f.create(v1alpha1.RolloutsResource, v1alpha1.RolloutKind, domain, &v1alpha1.Rollout{Spec: spec})
		return
	}
	f.patch(map[string]any{"revision": pinned})
}

// patch changes the spec of the Rollout.
func (f *fleet) patch(spec map[string]any) {
	f.t.Helper()
	body, err := json.Marshal(map[string]any{"spec": spec})
	must(f.t, err)
	_, err = f.client.Resource(v1alpha1.RolloutsResource).Patch(f.t.Context(), domain, types.MergePatchType, body, metav1.PatchOptions{})
	must(f.t, err)
}

func (f *fleet) create(resource schema.GroupVersionResource, kind, name string, object any) {
	f.t.Helper()
	fields, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(object)
	must(f.t, err)
	delete(fields, "status")
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetName(name)
	_, err = f.client.Resource(resource).Create(f.t.Context(), u, metav1.CreateOptions{})
	must(f.t, err)
}

func (f *fleet) rollout(ctx context.Context) (*v1alpha1.Rollout, error) {
	u, err := f.client.Resource(v1alpha1.RolloutsResource).Get(ctx, domain, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var r v1alpha1.Rollout
	return &r, apiruntime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &r)
}

func (f *fleet) ledger(ctx context.Context) (protocol.Ledger, error) {
	l, _, err := kube.NewLedgerStore(f.client, domain).Load(ctx)
	return l, err
}

// over returns nil when the rollout of a revision has ended, and every node was given back.
func (f *fleet) over(ctx context.Context, revision string) error {
	r, err := f.rollout(ctx)
	if err != nil {
		return err
	}
	if r.Status.Phase != v1alpha1.RolloutPhase(rollout.Completed) || r.Status.ObservedGeneration != r.Generation {
		return fmt.Errorf("the rollout of %q is %s, %s", revision, r.Status.Phase, r.Status.Message)
	}
	l, err := f.ledger(ctx)
	if err != nil {
		return err
	}
	if len(l.Slots) > 0 {
		return fmt.Errorf("there are %d slots", len(l.Slots))
	}
	nodes, err := f.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		if n := &nodes.Items[i]; n.Spec.Unschedulable || n.Annotations[controller.HeldAnnotation] != "" || n.Annotations[controller.ScaleDownAnnotation] != "" {
			return fmt.Errorf("node %q was not given back: %t, %v", n.Name, n.Spec.Unschedulable, n.Annotations)
		}
	}
	return nil
}
