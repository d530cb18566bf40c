// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectldrain

import (
	"fmt"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/testenv"
)

var shared = testenv.Shared{Options: testenv.Options{
	With: []testenv.Component{testenv.ControllerManager, testenv.Scheduler, testenv.Kwok},
	Args: map[testenv.Component][]string{testenv.ControllerManager: {"--node-monitor-grace-period=30m"}},
}}

var programs e2e.Programs

func TestMain(m *testing.M) {
	if os.Getenv(runAsKubectl) != "" {
		os.Exit(executeKubectl(os.Args[1:]))
	}
	os.Exit(programs.Main(m, &shared))
}

const (
	// placeReady is how long the control plane may take to bring its own things about.
	placeReady = time.Minute
	// placeLabel keeps the nodes and pods of a place together.
	placeLabel = "test.belay.dev/place"
)

// A place is a namespace with a node that has its pods, and another one that takes them.
type place struct {
	client     *kubernetes.Clientset
	namespace  string
	node       string
	kubeconfig string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	env := shared.Env(t)
	p := &place{client: kubernetes.NewForConfigOrDie(env.Config()), namespace: env.Namespace(t)}
	p.kubeconfig = login(t, env, "admin-of-"+p.namespace)
	p.node = p.namespace + "-1"
	old := func(n *corev1.Node) { n.Labels["old"] = p.namespace }
	p.addNode(t, env, p.node, old)
	return p
}

// addNode makes a node for the pods of the place, and waits until it is ready.
func (p *place) addNode(t *testing.T, env *testenv.Env, name string, changes ...func(*corev1.Node)) {
	t.Helper()
	join := func(n *corev1.Node) { n.Labels[placeLabel] = p.namespace }
	if _, err := env.CreateNode(t.Context(), name, append([]func(*corev1.Node){testenv.KwokNode, join},
		changes...)...); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, placeReady, "the node is ready", func() error {
		n, err := p.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && len(n.Spec.Taints) == 0 {
				return nil
			}
		}
		return fmt.Errorf("conditions %v, taints %v", n.Status.Conditions, n.Spec.Taints)
	})
}

func (p *place) spec() corev1.PodSpec {
	return corev1.PodSpec{
		NodeSelector: map[string]string{placeLabel: p.namespace}, TerminationGracePeriodSeconds: ptr.To[int64](1),
		Containers: []corev1.Container{{Name: "c", Image: "example.com/app"}},
	}
}

// template is of the pods of an app.
func (p *place) template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: p.spec()}
}

// deploy makes a deployment of two pods, and waits until they are ready.
func (p *place) deploy(t *testing.T, app string, replicas int32, changes ...func(*corev1.PodSpec)) {
	t.Helper()
	template := p.template(app)
	for _, change := range changes {
		change(&template.Spec)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
	}}
	if _, err := p.client.AppsV1().Deployments(p.namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, placeReady, "the app is ready", func() error {
		d, err := p.client.AppsV1().Deployments(p.namespace).Get(t.Context(), app, metav1.GetOptions{})
		if err == nil && d.Status.ReadyReplicas != replicas {
			err = fmt.Errorf("%d of %d are ready", d.Status.ReadyReplicas, replicas)
		}
		return err
	})
}

// fillNode makes an agent on the node, and then the node for the pods that leave.
func (p *place) fillNode(t *testing.T, apps ...func()) {
	t.Helper()
	template := p.template("agent")
	template.Spec.NodeSelector["old"] = p.namespace
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
	}}
	if _, err := p.client.AppsV1().DaemonSets(p.namespace).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, placeReady, "the agent runs", func() error {
		d, err := p.client.AppsV1().DaemonSets(p.namespace).Get(t.Context(), "agent", metav1.GetOptions{})
		if err == nil && d.Status.NumberReady != 1 {
			err = fmt.Errorf("%d are ready", d.Status.NumberReady)
		}
		return err
	})
	for _, app := range apps {
		app()
	}
	p.addNode(t, shared.Env(t), p.namespace+"-2")
}

func plain(t *testing.T, p *place) { p.fillNode(t, func() { p.deploy(t, "web", 2) }) }

func two(t *testing.T, p *place) {
	p.fillNode(t, func() { p.deploy(t, "web", 2) }, func() { p.deploy(t, "db", 1) })
}

func withData(t *testing.T, p *place) {
	p.fillNode(t, func() {
		p.deploy(t, "web", 2, func(s *corev1.PodSpec) {
			empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
			s.Volumes = []corev1.Volume{{Name: "data", VolumeSource: empty}}
		})
	})
}

// addBare makes a pod that no controller would create again.
func (p *place) addBare(t *testing.T) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "tool", Labels: map[string]string{"app": "tool"}},
		Spec: p.spec()}
	pod.Spec.NodeName = p.node
	if _, err := p.client.CoreV1().Pods(p.namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, placeReady, "the pod runs", func() error {
		pod, err := p.client.CoreV1().Pods(p.namespace).Get(t.Context(), "tool", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("phase %s", pod.Status.Phase)
		}
		return err
	})
}

func bare(t *testing.T, p *place) { p.fillNode(t, func() { p.addBare(t) }) }

func bareBeside(t *testing.T, p *place) {
	p.fillNode(t, func() { p.deploy(t, "web", 2) }, func() { p.addBare(t) })
}

// guarded is plain, under a budget that never allows an eviction.
func guarded(t *testing.T, p *place) {
	plain(t, p)
	budgets := p.client.PolicyV1().PodDisruptionBudgets(p.namespace)
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr.To(intstr.FromInt32(2)),
		Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}
	if _, err := budgets.Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, placeReady, "the budget counts its pods", func() error {
		b, err := budgets.Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && (b.Status.ObservedGeneration != b.Generation || b.Status.CurrentHealthy != 2) {
			err = fmt.Errorf("status %+v", b.Status)
		}
		return err
	})
}
