// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// A serverNode is a Node at a real API server, whose kubelet is played by the test with a kubelet's own credentials.
type serverNode struct {
	t           *testing.T
	name        string
	namespace   string
	admin       *kubernetes.Clientset
	credentials *rest.Config
	probes      map[string]configsync.Probe
}

func newServerNode(t *testing.T) *serverNode {
	t.Helper()
	env := shared.Env(t)
	n := &serverNode{t: t, namespace: env.Namespace(t), admin: kubernetes.NewForConfigOrDie(env.Config())}
	n.name = "n-" + n.namespace
	_, err := env.CreateNode(t.Context(), n.name)
	n.must(err)
	n.credentials = env.User(t, "system:node:"+n.name, "system:nodes")
	n.probes = n.probesOf(n.credentials)
	return n
}

func (n *serverNode) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// probesOf are the probes with the rights of a user, by name.
func (n *serverNode) probesOf(user *rest.Config) map[string]configsync.Probe {
	n.t.Helper()
	w, err := NewWitness(Subject{Command: []string{"/kubelet"}})
	n.must(err)
	all, err := NewProbes(dynamic.NewForConfigOrDie(user), n.name, w)
	n.must(err)
	byName := map[string]configsync.Probe{}
	for _, p := range all {
		byName[p.Name()] = p
	}
	return byName
}

// reportConditions sets the conditions of the Node as a kubelet does, at a time of its own.
func (n *serverNode) reportConditions(at int64, conditions ...corev1.NodeCondition) {
	n.t.Helper()
	node, err := n.admin.CoreV1().Nodes().Get(n.t.Context(), n.name, metav1.GetOptions{})
	n.must(err)
	for i := range conditions {
		conditions[i].LastHeartbeatTime = metav1.Unix(at, 0)
	}
	node.Status.Conditions = conditions
	_, err = n.admin.CoreV1().Nodes().UpdateStatus(n.t.Context(), node, metav1.UpdateOptions{})
	n.must(err)
}

// createPod creates a pod of the node, with the status that a kubelet gives it.
func (n *serverNode) createPod(name string, owner *metav1.OwnerReference, status corev1.PodStatus) *corev1.Pod {
	n.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: n.namespace},
		Spec:       corev1.PodSpec{NodeName: n.name, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	pod, err := n.admin.CoreV1().Pods(n.namespace).Create(n.t.Context(), pod, metav1.CreateOptions{})
	n.must(err)
	return n.setStatus(pod, status)
}

func (n *serverNode) setStatus(pod *corev1.Pod, status corev1.PodStatus) *corev1.Pod {
	n.t.Helper()
	pod.Status = status
	pod, err := n.admin.CoreV1().Pods(n.namespace).UpdateStatus(n.t.Context(), pod, metav1.UpdateOptions{})
	n.must(err)
	return pod
}

func (n *serverNode) deletePod(pod *corev1.Pod) {
	n.t.Helper()
	n.must(n.admin.CoreV1().Pods(n.namespace).Delete(n.t.Context(), pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
}

func runningStatus() corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
		Status: corev1.ConditionTrue}}}
}

// restartingStatus is that of a pod whose container is started again and again.
func restartingStatus() corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
		Status: corev1.ConditionFalse}}}
}

func failedStatus(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: message}
}

func ownedBy(kind, name string) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: "u", Controller: ptr.To(true)}
}

func readyCondition(s corev1.ConditionStatus, message string) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: s, Reason: "Kubelet", Message: message}
}

func pressureCondition(kind corev1.NodeConditionType, s corev1.ConditionStatus) corev1.NodeCondition {
	return corev1.NodeCondition{Type: kind, Status: s, Reason: "Kubelet", Message: "kubelet has it"}
}

// comparing is what configsync calls on a probe that compares.
type comparing interface {
	configsync.Probe
	TakeBaseline(ctx context.Context) ([]byte, error)
	Compare(ctx context.Context, baseline []byte, fallback bool) error
}

func (n *serverNode) takeBaseline(name string) []byte {
	n.t.Helper()
	b, err := n.probes[name].(comparing).TakeBaseline(n.t.Context())
	n.must(err)
	return b
}

// expectFinding polls a probe until it says what is wanted, as the API server's memory is a moment behind; empty: it
// passes.
func (n *serverNode) expectFinding(what, want string, ask func() error) {
	n.t.Helper()
	if err := testproc.Poll(20*time.Second, func() error {
		err := ask()
		got := ""
		if err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			return fmt.Errorf("%s: the probe says %q, want %q", what, got, want)
		}
		return nil
	}); err != nil {
		n.t.Error(err)
	}
}

// L-CS-34: a Node is well that is Ready by a word of its own since the restart, under no pressure that is new.
func TestNodeReadyProbe(t *testing.T) {
	n := newServerNode(t)
	p := n.probes["node-ready"].(comparing)
	check := func() error { return p.Check(t.Context()) }
	n.expectFinding("a Node that says nothing", "the node is not ready: it does not say that it is", check)
	n.reportConditions(100, readyCondition(corev1.ConditionFalse, "container runtime is down"))
	n.expectFinding("a runtime that is down", "the node is not ready: container runtime is down", check)
	n.reportConditions(200, readyCondition(corev1.ConditionTrue, "ok"), pressureCondition(corev1.NodeDiskPressure,
		corev1.ConditionTrue),
		pressureCondition(corev1.NodeMemoryPressure, corev1.ConditionFalse))
	n.expectFinding("a pressure without a baseline",
		"condition DiskPressure of the node is True: kubelet has it; whether it was before is not known", check)

	before := n.takeBaseline("node-ready")
	compare := func() error { return p.Compare(t.Context(), before, false) }
	n.expectFinding("a word of before the restart",
		"the node has not said that it is ready since the config was adopted: its last word is of 1970-01-01T00:03:20Z",
		compare)
	n.reportConditions(100, readyCondition(corev1.ConditionTrue, "ok"), pressureCondition(corev1.NodeDiskPressure,
		corev1.ConditionTrue))
	n.expectFinding("a pressure of before, and a clock that was set back", "", compare)
	n.reportConditions(300, readyCondition(corev1.ConditionTrue, "ok"), pressureCondition(corev1.NodeDiskPressure,
		corev1.ConditionTrue),
		pressureCondition(corev1.NodeMemoryPressure, corev1.ConditionTrue))
	n.expectFinding("evictionHard: memory.available: 99%",
		"condition MemoryPressure of the node is True: kubelet has it; it was not before", compare)
	n.must(n.admin.CoreV1().Nodes().Delete(t.Context(), n.name, metav1.DeleteOptions{}))
	n.expectFinding("a Node that is gone", "there is no Node", compare)
	if err := p.Compare(t.Context(), []byte("{"), false); err == nil || errors.Is(err, configsync.ErrUndecided) {
		t.Errorf("a damaged baseline: %v, want what Check says", err)
	}
}

// L-CS-34: pods that ran before still run. What its owner has deleted, or has ended by itself, does not count; what
// the kubelet has evicted or refused does, and stays, but not against the fallback.
func TestPodsProbe(t *testing.T) {
	n := newServerNode(t)
	p := n.probes["pods"].(comparing)
	daemon := ownedBy("DaemonSet", "net")
	a, b := n.createPod("a", nil, runningStatus()), n.createPod("b", ownedBy("ReplicaSet", "web"), runningStatus())
	job, never := n.createPod("job", ownedBy("Job", "job"), runningStatus()), n.createPod("never", nil, restartingStatus())
	net := n.createPod("net-1", daemon, runningStatus())
	var before []byte
	n.expectFinding("the pods of the node", "", func() error {
		before = n.takeBaseline("pods")
		for _, want := range []string{`"` + n.namespace + `/net"`, string(a.UID), string(b.UID), string(job.UID)} {
			if !strings.Contains(string(before), want) || strings.Contains(string(before), string(never.UID)) {
				return fmt.Errorf("the baseline is %s, want %s in it, and not pod never", before, want)
			}
		}
		return nil
	})
	compare := func() error { return p.Compare(t.Context(), before, false) }
	n.expectFinding("all still run", "", compare)

	job = n.setStatus(job, failedStatus("DeadlineExceeded", "it was too slow"))
	n.expectFinding("a pod that ended by itself", "", compare)
	n.deletePod(job)
	a = n.setStatus(a, restartingStatus())
	n.expectFinding("a pod that does not come up",
		fmt.Sprintf(`of 4 pods and DaemonSets that were ready before, 1 are not: pod %q is not ready`,
			n.namespace+"/a"), compare)
	n.expectFinding("the same under the fallback", "is not ready", func() error {
		return p.Compare(t.Context(), before,
			true)
	})
	a = n.setStatus(a, runningStatus())

	b = n.setStatus(b, failedStatus("UnexpectedAdmissionError", "a device is not there yet"))
	n.expectFinding("what any restart can do", "", compare)
	a = n.setStatus(a, failedStatus("Evicted", "The node was low on resource: memory."))
	lost := fmt.Sprintf("1 are not: pod %q has failed: Evicted: The node was low on resource: memory.",
		n.namespace+"/a")
	n.expectFinding("an eviction", lost, compare)
	n.deletePod(a)
	n.deletePod(b)
	n.expectFinding("after their owners have deleted them", lost, compare)
	n.expectFinding("what can't come back is not blamed on the fallback", "", func() error {
		return p.Compare(t.Context(),
			before, true)
	})

	n.setStatus(net, failedStatus("OutOfpods",
		"Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1"))
	fallback := func() error { return p.Compare(t.Context(), before, true) }
	n.expectFinding("maxPods: 1", fmt.Sprintf("DaemonSet %q had a ready pod on the node, and has none",
		n.namespace+"/net"),
		compare)
	n.expectFinding("its failed pod under the fallback", "", fallback)
	n.createPod("net-2", daemon, restartingStatus())
	n.expectFinding("its next pod under the fallback", "had a ready pod on the node, and has none", fallback)
	n.createPod("net-3", daemon, runningStatus())
	n.expectFinding("once it has a ready pod", "", fallback)
}

// L-CS-34: a static pod that is gone counts, as only its node takes it away. Its copy at the API server may be made
// anew.
func TestPodsProbeKnowsStaticPods(t *testing.T) {
	n := newServerNode(t)
	p, static := n.probes["pods"].(comparing), ownedBy("Node", n.name)
	var before []byte
	compare := func() error { return p.Compare(t.Context(), before, false) }
	mirror := n.createPod("static", static, runningStatus())
	n.expectFinding("the baseline with a static pod", "", func() error {
		if before = n.takeBaseline("pods"); !strings.Contains(string(before), n.namespace+"/static") {
			return fmt.Errorf("the baseline is %s", before)
		}
		return nil
	})
	n.deletePod(mirror)
	n.expectFinding("staticPodPath was taken away", fmt.Sprintf("static pod %q is gone", n.namespace+"/static"), compare)
	n.createPod("static", static, runningStatus())
	n.expectFinding("its copy was made anew", "", compare)
}

// L-CS-34: an agent whose credentials are not its kubelet's needs the rights of ProbeRules, and no more. Without them
// the probes can't tell, and say what to do.
func TestProbeRulesAreEnough(t *testing.T) {
	n := newServerNode(t)
	n.reportConditions(100, readyCondition(corev1.ConditionTrue, "ok"))
	_, err := n.admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(t.Context(),
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.name}}, metav1.CreateOptions{})
	n.must(err)
	user := "probes-" + n.namespace
	probes := n.probesOf(shared.Env(t).User(t, user))
	for _, name := range []string{"node-ready", "heartbeat"} {
		if err := probes[name].Check(t.Context()); !errors.Is(err, configsync.ErrUndecided) ||
			!strings.Contains(err.Error(), "--node-probes=false") {
			t.Errorf("%s without rights: %v, want ErrUndecided and a way out", name, err)
		}
	}
	if _, err := probes["pods"].(comparing).TakeBaseline(t.Context()); !errors.Is(err, configsync.ErrUndecided) {
		t.Errorf("pods without rights: %v, want ErrUndecided", err)
	}
	cluster, lease := ProbeRules(n.name)
	meta, subjects := metav1.ObjectMeta{Name: user}, []rbacv1.Subject{{APIGroup: rbacv1.GroupName,
		Kind: rbacv1.UserKind, Name: user}}
	roles := n.admin.RbacV1()
	_, err = roles.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: cluster},
		metav1.CreateOptions{})
	n.must(err)
	_, err = roles.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta,
		Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: user}}, metav1.CreateOptions{})
	n.must(err)
	_, err = roles.Roles(corev1.NamespaceNodeLease).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: lease},
		metav1.CreateOptions{})
	n.must(err)
	_, err = roles.RoleBindings(corev1.NamespaceNodeLease).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta,
		Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: user}}, metav1.CreateOptions{})
	n.must(err)
	n.expectFinding("node-ready with the rights", "", func() error { return probes["node-ready"].Check(t.Context()) })
	n.expectFinding("pods with the rights", "", func() error {
		_,
			err := probes["pods"].(comparing).TakeBaseline(t.Context())
		return err
	})
	n.expectFinding("heartbeat with the rights", "no heartbeat yet since the kubelet was started",
		func() error { return probes["heartbeat"].Check(t.Context()) })
}

// L-CS-34: a heartbeat of the kubelet that runs now is one that was not there when it was first looked at, by Lease
// or Ready, whatever its time is.
func TestHeartbeatProbe(t *testing.T) {
	n := newServerNode(t)
	pid := 1
	p := n.probes["heartbeat"].(*heartbeatProbe)
	p.pid = func() int { return pid }
	check := func() error { return p.Check(t.Context()) }
	leases := kubernetes.NewForConfigOrDie(n.credentials).CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: n.name},
		Spec:       coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To(int32(40)), RenewTime: ptr.To(metav1.NowMicro())},
	}, metav1.CreateOptions{})
	n.must(err)
	n.reportConditions(100, readyCondition(corev1.ConditionTrue, "ok"))
	n.expectFinding("the first look", "no heartbeat yet", check)
	if err := check(); !errors.Is(err, configsync.ErrUndecided) {
		t.Errorf("before there was time for a heartbeat: %v, want ErrUndecided", err)
	}
	renewed := metav1.NewMicroTime(time.Unix(1, 0)) // a clock that was set back
	lease.Spec.RenewTime = &renewed
	_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
	n.must(err)
	n.expectFinding("a Lease that was renewed", "", check)
	pid = 2
	n.expectFinding("the next run", "no heartbeat yet", check)
	n.reportConditions(200, readyCondition(corev1.ConditionTrue, "ok"))
	n.expectFinding("a newer word of Ready", "", check)
}
