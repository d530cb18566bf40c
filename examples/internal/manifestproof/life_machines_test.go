// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
	execprovider "github.com/belayproject/belay/machine/provider/exec"
	"github.com/belayproject/belay/machine/provider/providertest"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// machineSpace is the namespace of machines.
const machineSpace = "belay-machines"

// runProvider is a provider of machines at the address that the first argument is. The last one is the verb.
func runProvider(ctx context.Context, args []string) error {
	cloud, err := providertest.New(providertest.Options{URL: args[0]})
	if err != nil {
		return err
	}
	return execprovider.Serve(ctx, cloud, args[len(args)-1], os.Stdin, os.Stdout)
}

// A controller with the base machines, which is not part of the whole, uses every right that this gives, and is denied nothing: a deployment is born with a config source and a
// Secret, is updated in place and by other machines, and ends; a set and a health check are beside it.
func TestMachinesUseTheirRightsAlone(t *testing.T) {
	t.Parallel()
	f, admin := newMachines(t)
	go f.kubelets(t.Context(), admin)
	f.declare("MachineDeployment", "pool", pool("pool", 1, map[string]any{"strategy": map[string]any{"type": "InPlace"}, "historyLimit": int64(0)}))
	f.declare("MachineSet", "alone", pool("alone", 0, nil))
	f.declare("MachineHealthCheck", "check", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"pool": "pool"}}})
	f.pooled(1, "small", "a")
	f.contended()
	f.repool(`{"template": {"spec": {"providerConfig": {"size": "medium"}}}}`)
	f.pooled(1, "medium", "a")
	f.repool(`{"template": {"spec": {"providerConfig": {"zone": "b"}}}}`)
	f.pooled(1, "medium", "b")
	f.repool(`{"replicas": 0}`)
	f.pooled(0, "", "")
	f.replicas[0].stops()
	f.auditedMachines()
}

// newMachines is a control plane with the manifests of the controller and of machines, one pod of the Deployment with its program, and a cloud.
func newMachines(t *testing.T) (*fleet, *providertest.Admin) {
	t.Helper()
	server, err := providertest.NewServer(providertest.ServerOptions{Dir: t.TempDir(), NoSync: true})
	must(t, err)
	cloud := httptest.NewServer(server)
	t.Cleanup(cloud.Close)
	admin, err := providertest.NewAdmin(providertest.Options{URL: cloud.URL})
	must(t, err)
	env := testenv.Start(t, testenv.Options{AuditPolicy: fleetAudit, Args: map[testenv.Component][]string{testenv.APIServer: {"--feature-gates=WatchList=false"}}})
	f := &fleet{cluster: clusterOf(t, env), t: t, dir: t.TempDir()}
	f.installAll(t)
	f.apply(t, build(t, "machines"))
	_, err = f.admin.CoreV1().Secrets(machineSpace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "join"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = env.CreateNode(t.Context(), "of-the-controller")
	must(t, err)
	deployment := find[appsv1.Deployment](t, build(t, "."), "Deployment", controllerAccount)
	pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
	pod.Name, pod.Spec.NodeName = "controller", "of-the-controller"
	pod, err = f.admin.CoreV1().Pods(systemNamespace).Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	f.replicas = []*replica{f.replica(pod, "--cluster=test", "--machine-provider="+self(t), "--machine-provider-args="+asProvider+","+cloud.URL)}
	return f, admin
}

// pool is the spec of what makes machines.
func pool(name string, replicas int64, more map[string]any) map[string]any {
	labels := map[string]any{"pool": name}
	spec := map[string]any{
		"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"providerConfig": map[string]any{
				"apiVersion": providertest.APIVersion, "kind": providertest.KindName,
				"size": "small", "zone": "a", "startMilliseconds": int64(50),
				"updates": map[string]any{"size": string(provider.InPlace), "zone": string(provider.Replace)},
			},
			"deletion":     map[string]any{"diskPolicy": "Destroy"},
			"bootstrap":    map[string]any{"secretRef": map[string]any{"name": "join"}},
			"configSource": map[string]any{"configMapRef": map[string]any{"namespace": "default", "name": "c", "uid": "u-1", "key": "kubelet"}},
		}},
	}
	for k, v := range more {
		spec[k] = v
	}
	return spec
}

// declare makes an object of the namespace of machines, with an annotation of the cluster-autoscaler.
func (f *fleet) declare(kind, name string, spec map[string]any) {
	f.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetName(name)
	u.SetNamespace(machineSpace)
	u.SetAnnotations(map[string]string{machine.MaxSizeAnnotation: "3"})
	_, err := f.api(f.t, u.GroupVersionKind(), machineSpace).Create(f.t.Context(), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	must(f.t, err)
}

// edit changes the spec of an object there.
func (f *fleet) edit(resource schema.GroupVersionResource, name, spec string) {
	f.t.Helper()
	_, err := f.objects.Resource(resource).Namespace(machineSpace).Patch(f.t.Context(), name, types.MergePatchType, []byte(`{"spec": `+spec+`}`), metav1.PatchOptions{})
	must(f.t, err)
}

// repool changes the spec of the deployment.
func (f *fleet) repool(spec string) {
	f.t.Helper()
	f.edit(v1alpha1.MachineDeploymentsResource, "pool", spec)
}

// pooled waits until the deployment is at its template with one set, and has that many machines, all of them such.
func (f *fleet) pooled(replicas int32, size, zone string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%d machines of size %q in zone %q", replicas, size, zone), func() error {
		u, err := f.objects.Resource(v1alpha1.MachineDeploymentsResource).Namespace(machineSpace).Get(f.t.Context(), "pool", metav1.GetOptions{})
		if err != nil {
			return err
		}
		var d v1alpha1.MachineDeployment
		must(f.t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &d))
		if s := d.Status; s.ObservedGeneration != d.Generation || s.Replicas != replicas || s.UpdatedReplicas != replicas || s.ReadyReplicas != replicas {
			return fmt.Errorf("the deployment says %+v", s)
		}
		sets, err := f.objects.Resource(v1alpha1.MachineSetsResource).Namespace(machineSpace).List(f.t.Context(), metav1.ListOptions{LabelSelector: machine.DeploymentLabel + "=pool"})
		if err == nil && len(sets.Items) != 1 {
			err = fmt.Errorf("it has %d sets", len(sets.Items))
		}
		if err != nil {
			return err
		}
		machines, err := f.objects.Resource(v1alpha1.MachinesResource).Namespace(machineSpace).List(f.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range machines.Items {
			is, _, _ := unstructured.NestedMap(machines.Items[i].Object, "spec", "providerConfig")
			if is["size"] != size || is["zone"] != zone {
				return fmt.Errorf("a machine is %v", is)
			}
		}
		return nil
	})
}

// contended edits a deployment and a health check again and again, so that the controller writes their statuses between
// two edits, until it has met versions that its cache has not seen: it reads those then. The log is read seldom: it is
// long, and the edits would come one by one.
func (f *fleet) contended() {
	f.t.Helper()
	const crowd, burst = 8, 25
	for i := range crowd {
		name := fmt.Sprintf("crowd-%d", i)
		f.declare("MachineDeployment", name, pool(name, 0, nil))
		f.declare("MachineHealthCheck", name, map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"pool": name}}})
	}
	edits := 0
	f.eventually("the controller meets edits by others", func() error {
		name := fmt.Sprintf("crowd-%d", edits/burst%crowd)
		for range burst {
			edits++
			f.edit(v1alpha1.MachineDeploymentsResource, name, fmt.Sprintf(`{"progressDeadline": "%dm"}`, 30+edits))
			f.edit(v1alpha1.MachineHealthChecksResource, name, fmt.Sprintf(`{"cooldown": "%dm"}`, 10+edits))
		}
		a := newAudit(f.t, build(f.t, "machines"))
		a.read(events(f.t, whole(read(f.t, f.env.AuditLog()))))
		for _, right := range a.left() {
			if strings.HasSuffix(right, ": get belay.dev/machinedeployments") || strings.HasSuffix(right, ": get belay.dev/machinehealthchecks") {
				return fmt.Errorf("after %d edits of each it has not used %s", edits, right)
			}
		}
		return nil
	})
	f.t.Logf("it has met edits by others after %d of each kind", edits)
}

// kubelets registers the Node of each instance that runs, and reports again and again, until ctx ends.
func (f *fleet) kubelets(ctx context.Context, admin *providertest.Admin) {
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		hosts, err := admin.Instances(ctx)
		if err != nil {
			continue
		}
		for _, h := range hosts {
			if h.State == provider.Running {
				f.report(ctx, "node-"+h.Token, h.ProviderID)
			}
		}
	}
}

// report is that of a kubelet, which is made again after an error.
func (f *fleet) report(ctx context.Context, name, id string) {
	nodes := f.admin.CoreV1().Nodes()
	n, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		n, err = nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}, metav1.CreateOptions{})
	}
	if err != nil {
		return
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now()}}
	_, _ = nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{})
}

// auditedMachines compares the log with the roles of the base, and proves that one right too many is found in each.
func (f *fleet) auditedMachines() {
	f.t.Helper()
	f.log = read(f.t, f.env.AuditLog())
	a := newAudit(f.t, build(f.t, "machines"))
	a.read(events(f.t, f.log))
	for _, line := range a.denied {
		f.t.Errorf("denied: %s", line)
	}
	for _, line := range a.left() {
		f.t.Errorf("given and not used: %s", line)
	}
	f.t.Logf("%v requests", a.requests)
	f.widened("machines")
}
