// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/kube"
)

// A ward is two nodes with a Deployment of two pods, one on each, and a DaemonSet on the first one, by the real controllers; the test is their
// scheduler and their kubelets.
type ward struct {
	*bed
	h           kube.Health
	ns          string
	node, other controller.Node
	spare       string          // where new pods go that belong on no node
	sick        map[string]bool // names of pods that don't become ready
	conditions  map[corev1.NodeConditionType]corev1.ConditionStatus
	idle        bool // nothing new is scheduled
}

func newWard(t *testing.T, name string, o kube.HealthOptions) *ward {
	t.Helper()
	w := &ward{bed: newBed(t), sick: map[string]bool{}, conditions: map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse, corev1.NodeDiskPressure: corev1.ConditionFalse,
		corev1.NodePIDPressure: corev1.ConditionFalse,
	}}
	w.ns = w.env.Namespace(t)
	w.node, w.other = w.add(name+"-a", name), w.add(name+"-b", "")
	w.spare = w.node.Name
	pod := func(app string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
		}
	}
	two := int32(2)
	_, err := w.core.AppsV1().Deployments(w.ns).Create(w.ctx(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: pod("web"),
	}}, metav1.CreateOptions{})
	w.must(err)
	agent := pod("agent")
	agent.Spec.NodeSelector = map[string]string{"ward": name}
	_, err = w.core.AppsV1().DaemonSets(w.ns).Create(w.ctx(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}, Template: agent,
	}}, metav1.CreateOptions{})
	w.must(err)
	w.h = w.health(w.core, o)
	w.eventually("three pods are at work", func(ctx context.Context) error {
		w.tend()
		b, err := w.h.Baseline(ctx, w.node)
		if err == nil && (!strings.Contains(b, " ds=") || !strings.HasSuffix(b, "=2")) {
			err = fmt.Errorf("the baseline is %q", b)
		}
		return err
	})
	w.wants("a node with its work", "", rollout.Allow, "", "")
	return w
}

// health is one that has synced.
func (b *bed) health(core kubernetes.Interface, o kube.HealthOptions) kube.Health {
	b.t.Helper()
	factory := informers.NewSharedInformerFactory(core, 0)
	h, err := kube.NewHealth(kube.FactoryInformers(factory), o)
	b.must(err)
	if v := h.Verdict(b.ctx(), controller.Node{Name: "n"}, ""); v.Answer != rollout.Unknown || v.RetryAfter <= 0 {
		b.t.Errorf("before anything is known: %+v, want Unknown, and a time to ask again", v)
	}
	factory.Start(b.t.Context().Done())
	b.eventually("the cache", b.now(func() error {
		if !h.Synced() {
			return errors.New("not synced")
		}
		return nil
	}))
	return h
}

func (w *ward) add(name, ward string) controller.Node {
	w.t.Helper()
	n, err := w.env.CreateNode(w.ctx(), name, func(n *corev1.Node) { n.Labels = map[string]string{"ward": ward} })
	w.must(err)
	return controller.Node{Name: n.Name, UID: string(n.UID)}
}

// pods are those of an app, or all, that are not ending.
func (w *ward) pods(app string) (all []corev1.Pod) {
	w.t.Helper()
	list, err := w.core.CoreV1().Pods(w.ns).List(w.ctx(), metav1.ListOptions{})
	w.must(err)
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil && (app == "" || p.Labels["app"] == app) {
			all = append(all, p)
		}
	}
	return all
}

// tend is one look of the scheduler and the kubelets: the first Deployment's pod goes to the other node, and then to the spare one.
func (w *ward) tend() {
	w.t.Helper()
	status := []string{}
	for kind, is := range w.conditions {
		status = append(status, fmt.Sprintf(`{"type":%q,"status":%q,"lastHeartbeatTime":%q}`, kind, is, time.Now().UTC().Format(time.RFC3339)))
	}
	w.patchStatus(w.node.Name, status)
	onOther := false
	for _, p := range w.pods("web") {
		onOther = onOther || p.Spec.NodeName == w.other.Name
	}
	for _, p := range w.pods("") {
		if p.Spec.NodeName == "" && !w.idle {
			to := w.spare
			if p.Labels["app"] == "agent" {
				to = w.node.Name
			} else if !onOther {
				to, onOther = w.other.Name, true
			}
			w.must(w.core.CoreV1().Pods(w.ns).Bind(w.ctx(), &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: p.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: to},
			}, metav1.CreateOptions{}))
			p.Spec.NodeName = to
		}
		if p.Spec.NodeName != "" {
			body := fmt.Sprintf(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":%q}]}}`, map[bool]string{true: "False", false: "True"}[w.sick[p.Name]])
			_, err := w.core.CoreV1().Pods(w.ns).Patch(w.ctx(), p.Name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "status")
			w.must(err)
		}
	}
}

func (w *ward) patchStatus(node string, conditions []string) {
	w.t.Helper()
	body := fmt.Sprintf(`{"status":{"conditions":[%s]}}`, strings.Join(conditions, ","))
	_, err := w.core.CoreV1().Nodes().Patch(w.ctx(), node, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "status")
	w.must(err)
}

// wants tends the nodes until the verdict is as wanted, and names what it is about.
func (w *ward) wants(what, baseline string, answer rollout.Answer, reason, text string) {
	w.t.Helper()
	w.eventually(what, func(ctx context.Context) error {
		w.tend()
		v := w.h.Verdict(ctx, w.node, baseline)
		if v.Answer != answer || v.Reason != reason || !strings.Contains(v.Message, text) || (v.RetryAfter > 0) != (answer != rollout.Allow) {
			return fmt.Errorf("the verdict is %+v, want %q for %q with %q in it", v, answer, reason, text)
		}
		return nil
	})
}

// remove ends a pod of an app on a node, or on any, as a kubelet does.
func (w *ward) remove(app, node string) {
	w.t.Helper()
	for _, p := range w.pods(app) {
		if p.Spec.NodeName == node || node == "" && p.Spec.NodeName != "" {
			now := int64(0)
			w.must(w.core.CoreV1().Pods(w.ns).Delete(w.ctx(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
			return
		}
	}
}

// R-RO-09: a node with a pod that is not ready, a bad condition or without a kubelet is not touched, and the verdict names what is wrong.
func TestHealthBefore(t *testing.T) {
	w := newWard(t, "before", kube.HealthOptions{Bad: []corev1.NodeConditionType{"KernelDeadlock"}})
	agent := w.pods("agent")[0].Name
	w.sick[agent] = true
	w.wants("a pod is not ready", "", rollout.Deny, "PodNotReady", agent)
	delete(w.sick, agent)
	w.wants("it is again", "", rollout.Allow, "", "")
	for kind, reason := range map[corev1.NodeConditionType]string{corev1.NodeDiskPressure: "BadCondition", "KernelDeadlock": "BadCondition"} {
		w.conditions[kind] = corev1.ConditionTrue
		w.wants("a bad condition", "", rollout.Deny, reason, string(kind))
		w.conditions[kind] = corev1.ConditionFalse
	}
	w.conditions["Odd"] = corev1.ConditionTrue
	w.wants("a condition of which nobody has said that it is bad", "", rollout.Allow, "", "")
	w.conditions[corev1.NodeReady] = corev1.ConditionUnknown
	w.wants("the kubelet is gone", "", rollout.Deny, "NotReady", "")
	w.node.UID = "another"
	w.wants("another node of the name", "", rollout.Unknown, "NotSeen", "")
}

// R-RO-10: a node has come back when its DaemonSets' pods and the work that was on it are ready again, wherever that is now, and its conditions are
// no worse than before.
func TestHealthAfter(t *testing.T) {
	w := newWard(t, "after", kube.HealthOptions{})
	w.conditions[corev1.NodePIDPressure] = corev1.ConditionTrue
	w.wants("a node under pressure", "", rollout.Deny, "BadCondition", "PIDPressure")
	before, err := w.h.Baseline(w.ctx(), w.node)
	w.must(err)
	if again, err := w.h.Baseline(w.ctx(), w.node); err != nil || again != before || len(before) > 100 {
		t.Errorf("baseline %q, then %q, %v, want the same short line", before, again, err)
	}
	w.wants("no worse than before", before, rollout.Allow, "", "")
	w.idle = true
	w.remove("web", w.node.Name)
	w.wants("the work is not back", before, rollout.Deny, "WorkMissing", fmt.Sprintf(`Deployment "%s/web" has 1 ready pods, want 2`, w.ns))
	w.idle, w.spare = false, w.other.Name
	w.wants("it is back on another node", before, rollout.Allow, "", "")
	w.idle = true
	w.remove("agent", w.node.Name)
	w.wants("the DaemonSet's pod is not back", before, rollout.Deny, "DaemonSetNotReady", w.ns+"/agent")
	w.idle = false
	w.wants("it is", before, rollout.Allow, "", "")
	w.conditions[corev1.NodeMemoryPressure] = corev1.ConditionTrue
	w.wants("worse than before", before, rollout.Deny, "BadCondition", "MemoryPressure")
	w.conditions[corev1.NodeMemoryPressure] = corev1.ConditionFalse
	w.conditions[corev1.NodeReady] = corev1.ConditionFalse
	w.wants("not ready", before, rollout.Deny, "NotReady", "")
	w.conditions[corev1.NodeReady] = corev1.ConditionTrue
	w.wants("a baseline of another version", "2 x", rollout.Unknown, "BaselineUnreadable", `form "2"`)
	w.wants("a baseline that somebody has changed", before+" x=1", rollout.Unknown, "BaselineUnreadable", `"x=1"`)
}

// R-RO-10: what people change meanwhile is no damage: another version of a Deployment, fewer replicas, a DaemonSet that goes elsewhere.
func TestHealthOfWorkThatIsChanged(t *testing.T) {
	w := newWard(t, "changed", kube.HealthOptions{})
	before, err := w.h.Baseline(w.ctx(), w.node)
	w.must(err)
	deployments := w.core.AppsV1().Deployments(w.ns)
	patch := func(body string) {
		_, err := deployments.Patch(w.ctx(), "web", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		w.must(err)
	}
	patch(`{"spec":{"template":{"metadata":{"annotations":{"version":"2"}}}}}`)
	w.eventually("another version", func(context.Context) error {
		w.tend()
		pods := w.pods("web")
		for _, p := range pods {
			if p.Annotations["version"] != "2" || len(pods) != 2 {
				return fmt.Errorf("%d pods, one has %v", len(pods), p.Annotations)
			}
		}
		return nil
	})
	w.wants("its pods are the Deployment's", before, rollout.Allow, "", "")
	w.idle = true
	w.remove("web", "")
	w.wants("one is gone", before, rollout.Deny, "WorkMissing", "want 2")
	patch(`{"spec":{"replicas":1}}`)
	w.wants("it is not wanted any more", before, rollout.Allow, "", "")
	w.remove("web", "")
	w.wants("none is left", before, rollout.Deny, "WorkMissing", "has 0 ready pods, want 1: it had 2 before")
	w.must(deployments.Delete(w.ctx(), "web", metav1.DeleteOptions{}))
	w.wants("the Deployment is gone", before, rollout.Allow, "", "")
	w.remove("agent", w.node.Name)
	w.wants("the DaemonSet's pod is gone", before, rollout.Deny, "DaemonSetNotReady", "agent")
	_, err = w.core.CoreV1().Nodes().Patch(w.ctx(), w.node.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"ward":""}}}`), metav1.PatchOptions{})
	w.must(err)
	w.wants("the DaemonSet does not select the node", before, rollout.Allow, "", "")
}

// A baseline fits into an annotation, whatever is on the node, and has nothing of pods that don't come back.
func TestBaselineIsShort(t *testing.T) {
	b := &bed{t: t}
	yes := true
	pods := []runtime.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}}
	add := func(name, kind string, change func(*corev1.Pod)) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}}
		if kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "owner-of-" + name, Controller: &yes}}
		}
		if change != nil {
			change(p)
		}
		pods = append(pods, p)
	}
	add("bare", "", nil)
	add("static", "Node", nil)
	add("finished", "Job", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	add("ending", "Job", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })
	add("ignored", "Job", nil)
	add("starting", "Job", func(p *corev1.Pod) { p.Status.Conditions = nil })
	node := controller.Node{Name: "n", UID: "u"}
	o := kube.HealthOptions{Ignore: func(p *corev1.Pod) bool { return p.Name == "ignored" }}
	if none, err := b.health(fake.NewClientset(pods...), o).Baseline(t.Context(), node); err != nil || none != "1" {
		t.Errorf("baseline of pods that don't come back: %q, %v, want none of them", none, err)
	}
	for i := range 500 {
		add(fmt.Sprintf("work-%d", i), "StatefulSet", nil)
		add(fmt.Sprintf("daemon-%d", i), "DaemonSet", nil)
	}
	full, err := b.health(fake.NewClientset(pods...), o).Baseline(t.Context(), node)
	if err != nil || len(full) > 4096 || len(strings.Fields(full)) != 1+200+60 {
		t.Errorf("baseline of 1,000 workloads: %d bytes, %d words, %v, want 4,096 bytes at most", len(full), len(strings.Fields(full)), err)
	}
}
