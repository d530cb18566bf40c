// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/testenv"
)

// settled is how long the control plane may take to bring its own things about.
const settled = time.Minute

// poolLabel keeps the nodes and pods of a test together.
const poolLabel = "test.belay.dev/pool"

// world is what one test has on the shared control plane: a namespace, and nodes that take the pods of that namespace alone.
type world struct {
	env        *testenv.Env
	client     *kubernetes.Clientset
	namespace  string
	user       string
	kubeconfig string
}

// newWorld makes one whose commands run as an administrator of its own, so that the audit log tells what they asked for.
func newWorld(t *testing.T) *world {
	t.Helper()
	env := shared.Env(t)
	w := &world{env: env, client: kubernetes.NewForConfigOrDie(env.Config()), namespace: env.Namespace(t)}
	w.user = "admin-of-" + w.namespace
	w.kubeconfig = w.login(t, w.user, "system:masters")
	return w
}

// login makes the kubeconfig of a user.
func (w *world) login(t *testing.T, user string, groups ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), user)
	if err := testenv.WriteKubeconfig(path, w.env.User(t, user, append(groups, "drain-test")...)); err != nil {
		t.Fatal(err)
	}
	return path
}

// node makes a node that runs the pods of the test, and waits until it does.
func (w *world) node(t *testing.T, suffix string, changes ...func(*corev1.Node)) string {
	t.Helper()
	name := w.namespace + "-" + suffix
	join := func(n *corev1.Node) { n.Labels[poolLabel] = w.namespace }
	if _, err := w.env.CreateNode(t.Context(), name, append(changes, testenv.KwokNode, join)...); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, settled, "the node is ready", func() error {
		n := w.get(t, name)
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && len(n.Spec.Taints) == 0 {
				return nil
			}
		}
		return fmt.Errorf("conditions %v, taints %v", n.Status.Conditions, n.Spec.Taints)
	})
	return name
}

func (w *world) get(t *testing.T, node string) *corev1.Node {
	t.Helper()
	n, err := w.client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *world) spec() corev1.PodSpec {
	return corev1.PodSpec{
		NodeSelector:                  map[string]string{poolLabel: w.namespace},
		Containers:                    []corev1.Container{{Name: "c", Image: "example.com/app"}},
		TerminationGracePeriodSeconds: ptr.To[int64](1),
	}
}

// app makes a deployment and waits until all its pods are ready.
func (w *world) app(t *testing.T, name string, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: w.spec()},
	}}
	if _, err := w.client.AppsV1().Deployments(w.namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, settled, "the app is ready", func() error {
		d, err := w.client.AppsV1().Deployments(w.namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && d.Status.ReadyReplicas != replicas {
			err = fmt.Errorf("%d of %d are ready", d.Status.ReadyReplicas, replicas)
		}
		return err
	})
}

// budget protects an app and waits until the budget counts its pods.
func (w *world) budget(t *testing.T, app string, minAvailable, allowed int32) {
	t.Helper()
	budgets := w.client.PolicyV1().PodDisruptionBudgets(w.namespace)
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr.To(intstr.FromInt32(minAvailable)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}}
	if _, err := budgets.Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, settled, "the budget counts its pods", func() error {
		b, err := budgets.Get(t.Context(), app, metav1.GetOptions{})
		if err == nil && (b.Status.ObservedGeneration != b.Generation || b.Status.DesiredHealthy != minAvailable ||
			b.Status.CurrentHealthy != minAvailable+allowed || b.Status.DisruptionsAllowed != allowed) {
			err = fmt.Errorf("status %+v", b.Status)
		}
		return err
	})
}

// bare makes a pod without a controller on a node.
func (w *world) bare(t *testing.T, name, node string) {
	t.Helper()
	spec := w.spec()
	spec.NodeName = node
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if _, err := w.client.CoreV1().Pods(w.namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, settled, "the pod runs", func() error {
		p, err := w.client.CoreV1().Pods(w.namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && p.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("phase %s", p.Status.Phase)
		}
		return err
	})
}

// pods names the pods on a node, sorted.
func (w *world) pods(t *testing.T, node string) []string {
	t.Helper()
	list, err := w.client.CoreV1().Pods(w.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// drain starts the command as the test's administrator, with a short settle time.
func (w *world) drain(t *testing.T, args ...string) *process {
	t.Helper()
	return start(t, append(args, "--kubeconfig="+w.kubeconfig)...)
}

// asFound checks that a node carries nothing of a drain, and its cordon.
func (w *world) asFound(t *testing.T, node string, cordoned bool) {
	t.Helper()
	n := w.get(t, node)
	if mark, ok := n.Annotations[drain.MarkAnnotation]; ok || n.Spec.Unschedulable != cordoned {
		t.Errorf("node %s: cordoned is %v, with the mark %q; want %v without a mark", node, n.Spec.Unschedulable, mark, cordoned)
	}
}

// heldBy checks that a node is cordoned with the mark of a holder.
func (w *world) heldBy(t *testing.T, node, holder string) {
	t.Helper()
	if n := w.get(t, node); !n.Spec.Unschedulable || !slices.Contains(holders(n), holder) {
		t.Errorf("node %s: cordoned is %v, held by %q; want it cordoned by %q", node, n.Spec.Unschedulable, holders(n), holder)
	}
}

// requests counts what a user has asked of the API server, by verb and resource.
func (w *world) requests(t *testing.T, user string) map[string]int {
	t.Helper()
	f, err := os.Open(w.env.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	counts := map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb, Stage string
			User        struct{ Username string }
			ObjectRef   struct{ Resource, Subresource string }
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.User.Username == user && e.Stage == "ResponseComplete" {
			counts[strings.TrimSuffix(fmt.Sprintf("%s %s/%s", e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource), "/")]++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return counts
}
