// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/e2e"
	"github.com/belayproject/belay/internal/testenv"
	rollout "github.com/belayproject/belay/rollout/v1alpha1"
)

const (
	// fleetNodes is how many nodes and agents there are.
	fleetNodes = 50
	// fleetPatience bounds each wait for the fleet.
	fleetPatience = 5 * time.Minute
	// fleetAudit has every request of the manifests' accounts in the log.
	fleetAudit = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n" +
		"rules: [{level: Metadata, users: [\"" + controllerUser + "\", \"" + agentUser + "\"]}]\n"
)

// A fleet is a cluster on which the manifests are installed, with a process for each pod of theirs, which has the pod's token.
type fleet struct {
	*cluster
	t           *testing.T
	dir         string
	controllers []*e2e.Process
	agents      []*e2e.Process
	metrics     []string // the address of each controller
}

// Two controllers and fifty agents, with the arguments, accounts, roles and policies of the manifests and nothing else, carry out a rollout with drains: no request of
// theirs is denied, and no right of theirs goes unused.
func TestFleetUsesItsRightsAlone(t *testing.T) {
	f := newFleet(t)
	f.beginRollout("v1")
	f.completes("v1")
	f.leaves()
	f.stops(f.controllers[0])
	f.turn("v2")
	f.completes("v2")
	for _, p := range append(f.agents, f.controllers[1]) {
		f.stops(p)
	}
	a := newAudit(t, only(build(t, "."), "Role", "ClusterRole"))
	// People are not there.
	delete(a.given, "ClusterRole/belay-viewer")
	delete(a.given, "ClusterRole/belay-operator")
	a.read(t, read(t, f.env.AuditLog()))
	for _, line := range a.denied {
		t.Errorf("denied: %s", line)
	}
	for _, line := range a.unused() {
		t.Errorf("given and not used: %s", line)
	}
	if a.requests[controllerUser] < fleetNodes || a.requests[agentUser] < 5*fleetNodes {
		t.Errorf("the audit log has %v: nothing is shown", a.requests)
	}
	t.Logf("%v requests", a.requests)
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	env := testenv.Start(t, testenv.Options{
		With: []testenv.Component{testenv.ControllerManager, testenv.Scheduler, testenv.Kwok}, AuditPolicy: fleetAudit,
		Args: map[testenv.Component][]string{testenv.ControllerManager: {"--node-monitor-grace-period=30m", "--kube-api-qps=200", "--kube-api-burst=200"}},
	})
	f := &fleet{cluster: clusterOf(t, env), t: t, dir: t.TempDir()}
	f.installAll(t)
	for i := range fleetNodes {
		_, err := env.CreateNode(t.Context(), fmt.Sprintf("node-%02d", i), testenv.KwokNode)
		must(t, err)
	}
	f.work()
	f.startControllers()
	f.startAgents()
	return f
}

// work is a Deployment with two pods for each node, and its budget.
func (f *fleet) work() {
	f.t.Helper()
	meta, labels := metav1.ObjectMeta{Name: "web"}, map[string]string{"app": "web"}
	_, err := f.admin.AppsV1().Deployments("default").Create(f.t.Context(), &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(2 * fleetNodes)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "web", Image: "example.com/web"}}, TerminationGracePeriodSeconds: new(int64(1)),
		}},
	}}, metav1.CreateOptions{})
	must(f.t, err)
	_, err = f.admin.PolicyV1().PodDisruptionBudgets("default").Create(f.t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, MaxUnavailable: new(intstr.FromString("20%")),
	}}, metav1.CreateOptions{})
	must(f.t, err)
}

// pods waits until there are that many of a namespace, and all of them run.
func (f *fleet) pods(namespace string, want int) (all []corev1.Pod) {
	f.t.Helper()
	e2e.Eventually(f.t, fleetPatience, "the pods of "+namespace, func() error {
		list, err := f.admin.CoreV1().Pods(namespace).List(f.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		all = list.Items
		for i := range all {
			if all[i].Status.Phase != corev1.PodRunning {
				return fmt.Errorf("%s is %s on %q", all[i].Name, all[i].Status.Phase, all[i].Spec.NodeName)
			}
		}
		if len(all) != want {
			return fmt.Errorf("there are %d, want %d", len(all), want)
		}
		return nil
	})
	return all
}

// startControllers starts one for each pod of the Deployment. Their nodes are not of the rollout: a pod that is drained would take its process with it.
func (f *fleet) startControllers() {
	f.t.Helper()
	program, own := f.built("controller"), map[string]bool{}
	for _, p := range f.pods(systemNamespace, 2) {
		own[p.Spec.NodeName] = true
		address := fmt.Sprintf("127.0.0.1:%d", testenv.Port(f.t))
		f.metrics = append(f.metrics, address)
		f.controllers = append(f.controllers, f.start(program, &p, "--listen="+address))
	}
	nodes, err := f.admin.CoreV1().Nodes().List(f.t.Context(), metav1.ListOptions{})
	must(f.t, err)
	for _, n := range nodes.Items {
		if !own[n.Name] {
			f.label(n.Name, `"yes"`)
		}
	}
}

func (f *fleet) label(node, value string) {
	f.t.Helper()
	patch := []byte(`{"metadata": {"labels": {"fleet": ` + value + `}}}`)
	_, err := f.admin.CoreV1().Nodes().Patch(f.t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	must(f.t, err)
}

// startAgents starts one for each pod of the DaemonSet, with hooks that keep what the node runs in a file.
func (f *fleet) startAgents() {
	f.t.Helper()
	program := f.built("agent")
	for _, p := range f.pods(agentNamespace, fleetNodes) {
		dir := filepath.Join(f.dir, p.Spec.NodeName)
		hooks := filepath.Join(dir, "hooks")
		must(f.t, os.MkdirAll(hooks, 0o700))
		hook := strings.NewReplacer("/var/lib/belay-agent/trial", filepath.Join(dir, "runs"), `"disruption": "None"`, `"disruption": "Drain"`).Replace(read(f.t, root+"/examples/trial/hook.sh"))
		for _, verb := range []string{"observe", "disruption", "apply", "verify", "revert"} {
			must(f.t, os.WriteFile(filepath.Join(hooks, verb), []byte(hook), 0o700)) //nolint:gosec // it is to be executed
		}
		f.agents = append(f.agents, f.start(program, &p, "--hooks="+hooks, "--state-dir="+filepath.Join(dir, "state"),
			"--verify-for=300ms", "--verify-every=100ms", "--verify-within=1m"))
	}
}

// built is a program of the main module.
func (f *fleet) built(name string) string {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	command := exec.CommandContext(f.t.Context(), "go", "build", "-o", path, "./examples/"+name)
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		f.t.Fatalf("building %s: %v\n%s", name, err, out)
	}
	return path
}

// start starts the process of a pod, with its arguments and its token, and what is different outside of a pod.
func (f *fleet) start(program string, pod *corev1.Pod, more ...string) *e2e.Process {
	f.t.Helper()
	account := pod.Spec.ServiceAccountName
	answer, err := f.admin.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(f.t.Context(), account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: new(int64(3600)), BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	must(f.t, err)
	config := rest.AnonymousClientConfig(f.env.Config())
	config.BearerToken = answer.Status.Token
	kubeconfig := filepath.Join(f.dir, pod.Name+".kubeconfig")
	must(f.t, testenv.WriteKubeconfig(kubeconfig, config))
	values := strings.NewReplacer("$(NODE_NAME)", pod.Spec.NodeName, "$(POD_UID)", string(pod.UID))
	var args []string
	for _, arg := range pod.Spec.Containers[0].Args {
		args = append(args, values.Replace(arg))
	}
	return e2e.Start(f.t, program, append(append(args, "--kubeconfig="+kubeconfig), more...)...)
}

// stops asks a process to end, which is no error.
func (f *fleet) stops(p *e2e.Process) {
	f.t.Helper()
	if code := p.Stop(f.t); code != 0 {
		f.t.Errorf("process %d ended with code %d, and wrote %s", p.PID(), code, p.Log())
	}
}

// beginRollout makes a Rollout, of which a fifth of the nodes may be away at a time.
func (f *fleet) beginRollout(revision string) {
	f.t.Helper()
	f.create(rollout.RolloutsResource.Resource, "Rollout", "fleet", map[string]any{
		"revision": f.revision(revision), "selector": map[string]any{"matchLabels": map[string]any{"fleet": "yes"}},
		"caps": []any{map[string]any{"scope": "Total", "max": int64(fleetNodes / 5)}},
	})
}

// revision makes a Revision, and returns how a Rollout names it.
func (f *fleet) revision(name string) map[string]any {
	f.t.Helper()
	digest := rollout.OpaqueDigest(name)
	f.create(rollout.RevisionsResource.Resource, "Revision", name, map[string]any{"digest": digest, "opaque": name})
	return map[string]any{"name": name, "digest": digest}
}

func (f *fleet) create(resource, kind, name string, spec map[string]any) {
	f.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(rollout.GroupVersion.WithKind(kind))
	u.SetName(name)
	_, err := f.objects.Resource(rollout.GroupVersion.WithResource(resource)).Create(f.t.Context(), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	must(f.t, err)
}

// turn has the Rollout bring the fleet to another revision.
func (f *fleet) turn(name string) {
	f.t.Helper()
	r := f.revision(name)
	patch := fmt.Appendf(nil, `{"spec": {"revision": {"name": %q, "digest": %q}}}`, r["name"], r["digest"])
	_, err := f.objects.Resource(rollout.RolloutsResource).Patch(f.t.Context(), "fleet", types.MergePatchType, patch, metav1.PatchOptions{})
	must(f.t, err)
}

// completes waits until a rollout is over, and every process is still there.
func (f *fleet) completes(revision string) {
	f.t.Helper()
	e2e.Eventually(f.t, fleetPatience, "the rollout to "+revision, func() error {
		u, err := f.objects.Resource(rollout.RolloutsResource).Get(f.t.Context(), "fleet", metav1.GetOptions{})
		if err != nil {
			return err
		}
		about, _, _ := unstructured.NestedString(u.Object, "status", "revision", "name")
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		if about != revision || phase != "Completed" {
			message, _, _ := unstructured.NestedString(u.Object, "status", "message")
			return fmt.Errorf("that of %q is %s: %s", about, phase, message)
		}
		return nil
	})
	for _, p := range f.agents {
		must(f.t, p.Running())
	}
}

// leaves takes most nodes out of the rollout: their shadows are removed, by who makes them.
func (f *fleet) leaves() {
	f.t.Helper()
	nodes, err := f.admin.CoreV1().Nodes().List(f.t.Context(), metav1.ListOptions{LabelSelector: "fleet=yes"})
	must(f.t, err)
	for _, n := range nodes.Items[8:] {
		f.label(n.Name, "null")
	}
	e2e.Eventually(f.t, fleetPatience, "the shadows of nodes that nobody selects are removed", func() error {
		left, err := f.objects.Resource(rollout.NodeShadowsResource).List(f.t.Context(), metav1.ListOptions{})
		if err == nil && len(left.Items) != 8 {
			err = fmt.Errorf("there are %d, want 8", len(left.Items))
		}
		return err
	})
	e2e.Eventually(f.t, fleetPatience, "the agents are counted", func() error {
		for _, address := range f.metrics {
			if page, err := e2e.Get(f.t.Context(), "http://"+address+"/metrics"); err == nil && strings.Contains(page, fmt.Sprintf(`belay_agents{state="Alive"} %d`, fleetNodes)) {
				return nil
			}
		}
		return fmt.Errorf("no controller counts %d", fleetNodes)
	})
}
