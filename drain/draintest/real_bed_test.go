// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/internal/tier"
)

// patient lets a node be silent for as long as a test takes. On a busy machine kwok renews Leases late: a node would be called not ready, and
// its pods with it, which nothing takes back, so that their budget protects them for good.
const patient = "--node-monitor-grace-period=30m"

// TestTheDrainerKeepsItsPromiseOnAServer runs the promise with real controllers, a real scheduler, and kwok for the kubelets.
func TestTheDrainerKeepsItsPromiseOnAServer(t *testing.T) {
	t.Parallel()
	env := testenv.Start(t, testenv.Options{
		With: []testenv.Component{testenv.ControllerManager, testenv.Scheduler, testenv.Kwok},
		Args: map[testenv.Component][]string{testenv.ControllerManager: {patient}},
	})
	part := func(t *testing.T, check func(*testing.T)) {
		if !inPart(t, 4) {
			tier.LeaveToProofs(t, "TestTheDrainerKeepsItsPromiseInMemory has the same rule in make test")
		}
		check(t)
	}
	draintest.TestDrainer(t, func(t *testing.T) draintest.Bed { return newRealBed(t, env) }, part)
}

// inPart reports whether a subtest is one of the n-th part of them that make test runs on a server: which ones is up
// to their names.
func inPart(t *testing.T, n uint32) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Name()))
	return h.Sum32()%n == 0
}

const bedLabel = "draintest.belay.dev/bed"

// realBed is a bed on a control plane. Its nodes take no pods but its own.
type realBed struct {
	real
	ns    string
	proxy *draintest.Proxy
	cache *kube.Cache
}

func newRealBed(t *testing.T, env *testenv.Env) *realBed {
	t.Helper()
	client, err := kube.NewClientForConfig(env.Config(), nil, kube.ClientOptions{QPS: 1000, Burst: 1000})
	must(t, "making a client", 0, err)
	typed := kubernetes.NewForConfigOrDie(env.Config())
	o := kube.CacheOptions{DaemonSets: true}
	factory := kube.NewFactory(typed, o)
	cache, err := kube.NewCache(factory, o)
	must(t, "making a cache", 0, err)
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	must(t, "syncing the cache", 0, cache.WaitForSync(t.Context()))
	return &realBed{
		real: real{env: env, typed: typed, client: client}, ns: env.Namespace(t), proxy: draintest.NewProxy(client, nil), cache: cache,
	}
}

func (b *realBed) Parts(*testing.T) drain.Options {
	return drain.Options{Cache: b.cache.View(), Client: b.proxy}
}

func (b *realBed) Plot() *draintest.Script { return b.proxy.Script }
func (b *realBed) Patience() time.Duration { return 2 * time.Minute }
func (b *realBed) Silence() time.Duration  { return time.Second }
func (b *realBed) Vigil() time.Duration    { return 6 * time.Second }
func (b *realBed) Namespace() string       { return b.ns }

// await polls until missing returns the empty string.
func (b *realBed) await(t *testing.T, missing func() string) {
	t.Helper()
	deadline := time.After(b.Patience())
	pace := testproc.NewPace()
	for {
		what := missing()
		if what == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("after %v: %s", b.Patience(), what)
		case <-pace.Next():
		}
	}
}

func (b *realBed) Node(t *testing.T, name string) string {
	t.Helper()
	name = b.ns + "-" + name
	node, err := b.env.CreateNode(t.Context(), name, testenv.KwokNode, func(n *corev1.Node) { n.Labels[bedLabel] = b.ns })
	node = must(t, "making a node", node, err)
	b.await(t, func() string {
		n := b.cache.View().Node(name)
		if n == nil || n.UID != node.UID || len(n.Spec.Taints) > 0 {
			return fmt.Sprintf("node %s is not there, or has taints", name)
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return ""
			}
		}
		return fmt.Sprintf("node %s is not ready", name)
	})
	return name
}

func (b *realBed) DeleteNode(t *testing.T, name string) {
	t.Helper()
	must(t, "deleting a node", 0, b.typed.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}))
	b.await(t, func() string {
		if b.cache.View().Node(name) != nil {
			return fmt.Sprintf("node %s is still there", name)
		}
		return ""
	})
}

func (b *realBed) UpdateNode(t *testing.T, name string, change func(*corev1.Node)) {
	t.Helper()
	must(t, "changing a node", 0, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := b.typed.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(node)
		_, err = b.typed.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
		return err
	}))
}

// template is a pod of an app that is spread over the nodes of the bed.
func (b *realBed) template(name string) corev1.PodTemplateSpec {
	labels := map[string]string{"app": name}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{bedLabel: b.ns},
			Containers:   []corev1.Container{{Name: "main", Image: "none"}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
			}},
		},
	}
}

func (b *realBed) App(t *testing.T, kind, name string, replicas int) {
	t.Helper()
	n, selector := int32(replicas), &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	var err error
	if kind == draintest.StatefulSet {
		_, err = b.typed.AppsV1().StatefulSets(b.ns).Create(t.Context(), &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       appsv1.StatefulSetSpec{Replicas: &n, Selector: selector, Template: b.template(name)},
		}, metav1.CreateOptions{})
	} else {
		_, err = b.typed.AppsV1().ReplicaSets(b.ns).Create(t.Context(), &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       appsv1.ReplicaSetSpec{Replicas: &n, Selector: selector, Template: b.template(name)},
		}, metav1.CreateOptions{})
	}
	must(t, "making an app", 0, err)
	b.await(t, func() string {
		ready := 0
		for _, node := range b.cache.View().Nodes() {
			for _, pod := range b.cache.View().Pods(node.Name) {
				if pod.Namespace == b.ns && pod.Labels["app"] == name && podReady(pod) {
					ready++
				}
			}
		}
		if ready != replicas {
			return fmt.Sprintf("%d of %d pods of %s are ready", ready, replicas, name)
		}
		return ""
	})
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (b *realBed) Pod(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	_, err := b.typed.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, "making a pod", 0, err)
	b.await(t, func() string {
		if p := b.cache.View().Pod(pod.Namespace, pod.Name); p == nil || !podReady(p) {
			return fmt.Sprintf("pod %s is not ready", pod.Name)
		}
		return ""
	})
}

func (b *realBed) DeletePod(t *testing.T, name string) {
	t.Helper()
	must(t, "deleting a pod", 0, b.typed.CoreV1().Pods(b.ns).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

func (b *realBed) Budget(t *testing.T, budget *policyv1.PodDisruptionBudget) {
	t.Helper()
	b.real.Budget(t, budget)
	b.await(t, func() string {
		for _, now := range b.cache.View().Budgets(b.ns) {
			c := meta.FindStatusCondition(now.Status.Conditions, policyv1.DisruptionAllowedCondition)
			if now.Name == budget.Name && now.Status.ObservedGeneration == now.Generation && c != nil && c.Reason != policyv1.SyncFailedReason {
				return ""
			}
		}
		return fmt.Sprintf("budget %s has no status", budget.Name)
	})
}

func (b *realBed) ChangeBudget(t *testing.T, name string, change func(*policyv1.PodDisruptionBudgetSpec)) {
	t.Helper()
	b.real.ChangeBudget(t, b.ns, name, change)
}

func (b *realBed) GetNode(t *testing.T, name string) *corev1.Node {
	t.Helper()
	node, err := b.typed.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return must(t, "reading a node", node, err)
}

func (b *realBed) GetPods(t *testing.T, node string) []*corev1.Pod {
	t.Helper()
	list, err := b.typed.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	list = must(t, "listing pods", list, err)
	var pods []*corev1.Pod
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods
}
