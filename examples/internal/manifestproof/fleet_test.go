// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/testenv"
)

const (
	// fleetNodesEnv is how many nodes and agents there are. Without it there are as many as the life takes.
	fleetNodesEnv, fewNodes = "BELAY_AUDIT_NODES", 14
	// fleetPatience bounds each wait for the fleet.
	fleetPatience = 3 * time.Minute
	// fleetAudit has every request of the manifests' accounts in the log.
	fleetAudit = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n" +
		"rules: [{level: Metadata, users: [\"" + controllerUser + "\", \"" + agentUser + "\"]}]\n"
)

// A fleet is a cluster on which the manifests are installed as they are, with the program of each pod of theirs: it has the arguments of the pod and its token.
type fleet struct {
	*cluster
	t        *testing.T
	dir      string
	nodes    int
	replicas []*replica
	agents   map[string]*agent // by node
	doomed   atomic.Bool       // nodes fail with fatal revisions from now on
	requests int               // of verbs
	log      string            // the audit log of the life
}

// newFleet is ready when every pod runs. The API server has no streaming lists, as before Kubernetes 1.34: a cache lists first, and watches then.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	env := testenv.Start(t, testenv.Options{
		With: []testenv.Component{testenv.ControllerManager, testenv.Scheduler, testenv.Kwok}, AuditPolicy: fleetAudit,
		Args: map[testenv.Component][]string{
			testenv.APIServer:         {"--feature-gates=WatchList=false"},
			testenv.ControllerManager: {"--node-monitor-grace-period=30m", "--kube-api-qps=200", "--kube-api-burst=200"},
		},
	})
	f := &fleet{cluster: clusterOf(t, env), t: t, dir: t.TempDir(), nodes: fleetNodes(t), agents: map[string]*agent{}}
	f.installAll(t)
	var wg sync.WaitGroup
	for i := range f.nodes {
		wg.Go(func() {
			if _, err := env.CreateNode(t.Context(), fmt.Sprintf("node-%02d", i), testenv.KwokNode); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f.eventually("every Node takes work", f.takesWork)
	f.work()
	f.startReplicas()
	f.startAgents()
	return f
}

// fleetNodes is how many nodes there are to be.
func fleetNodes(t *testing.T) int {
	t.Helper()
	text := os.Getenv(fleetNodesEnv)
	if text == "" {
		return fewNodes
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < fewNodes {
		t.Fatalf("%s is %q, want a number from %d on", fleetNodesEnv, text, fewNodes)
	}
	return n
}

// takesWork is nil when every Node is one that a scheduler takes.
func (f *fleet) takesWork() error {
	open, err := testenv.OpenNodes(f.t.Context(), f.admin)
	if err == nil && open != f.nodes {
		err = fmt.Errorf("%d of %d Nodes do", open, f.nodes)
	}
	return err
}

// work is a Deployment with a pod for each node, and its budget.
func (f *fleet) work() {
	f.t.Helper()
	meta, labels := metav1.ObjectMeta{Name: "web"}, map[string]string{"app": "web"}
	_, err := f.admin.AppsV1().Deployments("default").Create(f.t.Context(), &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(f.nodes)), Selector: &metav1.LabelSelector{MatchLabels: labels},
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

// eventually waits until something is so.
func (f *fleet) eventually(what string, is func() error) {
	f.t.Helper()
	e2e.Eventually(f.t, fleetPatience, what, is)
}

// pods waits until there are that many of a namespace, and all of them run.
func (f *fleet) pods(namespace string, want int) (all []corev1.Pod) {
	f.t.Helper()
	f.eventually("the pods of "+namespace+" run", func() error {
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

// label sets the label of nodes that the rollout selects, or takes it away with null.
func (f *fleet) label(node, value string) {
	f.t.Helper()
	patch := []byte(`{"metadata": {"labels": {"fleet": ` + value + `}}}`)
	_, err := f.admin.CoreV1().Nodes().Patch(f.t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	must(f.t, err)
}

// arguments are those of a pod's container, with a kubeconfig that has the token of the pod, and with what is different outside of a pod. Of a flag that stands twice
// the last one counts.
func (f *fleet) arguments(pod *corev1.Pod, more ...string) []string {
	f.t.Helper()
	answer, err := f.admin.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(f.t.Context(), pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
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
	return append(append(args, "--kubeconfig="+kubeconfig), more...)
}

// A replica is a pod of the Deployment with its process.
type replica struct {
	*fleet
	args          []string
	metrics, page string // addresses
	process       *e2e.Process
}

// startReplicas starts one for each pod of the Deployment. Their nodes are not of the rollout: a pod that is drained would take its token with it.
func (f *fleet) startReplicas() {
	f.t.Helper()
	own := map[string]bool{}
	for _, p := range f.pods(systemNamespace, 2) {
		own[p.Spec.NodeName] = true
		f.replicas = append(f.replicas, f.replica(&p, "--agent-lease-duration=10s", "--agent-gc-after=20s"))
	}
	nodes, err := f.admin.CoreV1().Nodes().List(f.t.Context(), metav1.ListOptions{})
	must(f.t, err)
	for _, n := range nodes.Items {
		if !own[n.Name] {
			f.label(n.Name, `"yes"`)
		}
	}
}

// replica starts the process of a pod, with the shortest times that are allowed, so that an end is seen soon; and with the page, which is off.
func (f *fleet) replica(pod *corev1.Pod, more ...string) *replica {
	f.t.Helper()
	r := &replica{fleet: f, metrics: fmt.Sprintf("127.0.0.1:%d", testenv.Port(f.t)), page: fmt.Sprintf("127.0.0.1:%d", testenv.Port(f.t))}
	r.args = f.arguments(pod, append([]string{"--listen=" + r.metrics, "--page-bind-address=" + r.page, "--lease-duration=5s"}, more...)...)
	r.start()
	return r
}

// start starts the process of the replica, the first time or after its end.
func (r *replica) start() {
	r.t.Helper()
	r.process = e2e.Start(r.t, self(r.t), append([]string{asController}, r.args...)...)
}

// stops asks the process to end, which is no error.
func (r *replica) stops() {
	r.t.Helper()
	if code := r.process.Stop(r.t); code != 0 {
		r.t.Errorf("a replica ended with code %d", code)
	}
}

// says is an error as long as its metrics do not have a text.
func (r *replica) says(text string) error {
	answer, err := e2e.Get(r.t.Context(), "http://"+r.metrics+"/metrics")
	if err == nil && !strings.Contains(answer, text) {
		err = fmt.Errorf("the metrics have no %q", text)
	}
	return err
}

// self is this test binary.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	return path
}

// An agent is a pod of the DaemonSet with its program.
type agent struct {
	args   []string
	box    *box
	stop   context.CancelFunc
	done   chan error
	doomed *atomic.Bool
}

// startAgents runs one for each pod of the DaemonSet in this process. Hooks are checked as the agent does, and are not run: they enter the node's namespaces.
func (f *fleet) startAgents() {
	f.t.Helper()
	hooks := filepath.Join(f.dir, "hooks")
	must(f.t, os.Mkdir(hooks, 0o700))
	_, files := agents(f.t)
	for name, text := range files.Data {
		must(f.t, os.WriteFile(filepath.Join(hooks, name), []byte(text), 0o700)) //nolint:gosec // it is to be executed
	}
	for _, p := range f.pods(agentNamespace, f.nodes) {
		state := filepath.Join(f.dir, p.Spec.NodeName)
		must(f.t, os.Mkdir(state, 0o700))
		args := f.arguments(&p, "--hooks="+hooks, "--state-dir="+state, "--lease-duration=10s", "--verify-for=300ms", "--verify-every=100ms", "--verify-within=5s", "--retry-max=2s")
		f.agents[p.Spec.NodeName] = &agent{args: args, doomed: &f.doomed}
		f.agents[p.Spec.NodeName].start(f.t)
	}
}

// start runs the agent until it is stopped, or the test ends.
func (a *agent) start(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	a.box, a.stop, a.done = newBox(a.doomed), stop, make(chan error, 1)
	go func() { a.done <- runAgent(ctx, a.args, a.box) }()
	t.Cleanup(a.stop)
}

// stops asks the agent to end, which is no error.
func (a *agent) stops(t *testing.T) {
	t.Helper()
	a.stop()
	select {
	case err := <-a.done:
		if err != nil {
			t.Errorf("an agent ended with %v", err)
		}
	case <-time.After(fleetPatience):
		t.Fatal("an agent does not end")
	}
}
