// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/configsync"
	configapi "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A steered node is one whose NodeShadow says which config it is to use.
type steered struct {
	*world
	s *stage
}

// newSteered has an agent with the rights of an agent and no others.
func newSteered(t *testing.T, s *stage) *steered {
	t.Helper()
	w := newWorld(t, s.Env, "steered")
	node, err := w.Client.CoreV1().Nodes().Get(t.Context(), w.Node, metav1.GetOptions{})
	must(t, err)
	node.Labels["fleet"] = rolloutstage.Domain
	node, err = w.Client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	must(t, err)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	_, err = w.Client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	must(t, err)
	grant(t, w)
	w.Flags = append(w.Flags, "--source=shadow", "--verify-for=300ms", "--verify-every=100ms", "--verify-within=60s",
		"--lease-namespace="+agents, "--lease-duration=10s")
	return &steered{w, s}
}

// grant adds what an agent of that node needs for rollouts.
func grant(t *testing.T, w *world) {
	t.Helper()
	meta, roles := metav1.ObjectMeta{Name: "rollouts-" + w.Node}, w.Client.RbacV1()
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}
	user := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "agent:" + w.Node}}
	_, err := roles.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: kube.AgentRules(w.Node)}, metav1.CreateOptions{})
	must(t, err)
	_, err = roles.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: user}, metav1.CreateOptions{})
	must(t, err)
	ref = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: agentName} // that of the manifests
	_, err = roles.RoleBindings(agents).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: user}, metav1.CreateOptions{})
	must(t, err)
}

// R-ID-01: a second agent of a node that supervises a kubelet is told who the first is, takes no part in rollouts, and keeps its kubelet: which of two
// machines is the node is not for it to decide. It takes part when the first is gone.
func TestSecondAgentKeepsItsKubelet(t *testing.T) {
	t.Parallel()
	n := newSteered(t, newStage(t, "agent/rbac.yaml"))
	takes := func(p *e2e.Process) func() error { return func() error { return p.Logged(takesPart, 1) } }
	first := n.Start(t)
	e2e.Eventually(t, soon, "the first agent takes part", takes(first))
	clone := e2e.NewAgent(t, &programs, n.Node, n.Kubeconfig)
	clone.Flags = n.Flags
	second := clone.Start(t)
	e2e.Eventually(t, soon, "the second agent is told, again and again", func() error {
		return second.Logged("is in use by another living process", 2)
	})
	if err := clone.Uses(t, ""); err != nil || len(clone.Children(t)) != 1 {
		t.Errorf("the second agent has children %v (%v), want its kubelet with the local config", clone.Children(t), err)
	}
	if takes(second)() == nil {
		t.Errorf("the second agent takes part")
	}
	if code := first.Stop(t); code != 0 {
		t.Errorf("asked to stop, the first agent exits with %d, want 0", code)
	}
	e2e.Eventually(t, soon, "the second agent takes part", takes(second))
}

// revision makes a Revision that stands for a config, and returns how a Rollout names it.
func (n *steered) revision(t *testing.T, name, config string) (v1alpha1.PinnedRevision, *corev1.ConfigMap) {
	t.Helper()
	cm := n.ConfigMap(t, name, config, nil)
	pinned := v1alpha1.PinnedRevision{Name: name, Digest: configsync.DigestOf(cm.Data)}
	n.create(t, v1alpha1.RevisionsResource, v1alpha1.RevisionKind, name, &v1alpha1.Revision{Spec: v1alpha1.RevisionSpec{
		Digest: pinned.Digest, ConfigMapRef: &configapi.ConfigMapRef{Namespace: cm.Namespace, Name: cm.Name, Digest: pinned.Digest},
	}})
	return pinned, cm
}

func (n *steered) create(t *testing.T, resource schema.GroupVersionResource, kind, name string, object any) {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	must(t, err)
	delete(fields, "status")
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetName(name)
	_, err = n.s.Client.Resource(resource).Create(t.Context(), u, metav1.CreateOptions{})
	must(t, err)
}

// R-CS-16, R-RO-34: the orders of a node's shadow drive which config its kubelet runs, through a rollout that the reference controller carries out. A
// config that crashes is left by the node itself: its condition says why, and its shadow that it runs what it ran before. What the shadow gives as the
// reason depends on whether the config was seen in use before it crashed.
func TestShadowDrivesTheConfig(t *testing.T) {
	t.Parallel()
	s := newStage(t, "agent/rbac.yaml")
	n := newSteered(t, s)
	n.Start(t)
	e2e.Eventually(t, soon, "the local config is used", func() error { return n.Uses(t, "") })
	s.control()
	v1, good := n.revision(t, "config-v1", n.Config("# v1\n"))
	n.create(t, v1alpha1.RolloutsResource, v1alpha1.RolloutKind, rolloutstage.Domain, &v1alpha1.Rollout{Spec: v1alpha1.RolloutSpec{
		Domain: rolloutstage.Domain, Revision: v1, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": rolloutstage.Domain}},
		Caps: []v1alpha1.Cap{{Scope: v1alpha1.Scope(rollout.Total), Max: intstr.FromInt(1)}},
	}})
	e2e.Eventually(t, patience, "the rollout completes", func() error { return s.Completed(t.Context(), "config-v1") })
	if err := n.Promoted(t, string(good.UID)); err != nil {
		t.Errorf("the rollout is over, but %v", err)
	}
	n.runs(t, good)

	bad, crash := n.revision(t, "config-v2", n.Config("featureGates: {NoSuchGate: true}\n"))
	must(t, n.turn(t, bad))
	shadow := shadowOf(t, s.Client, n.Node)
	e2e.Eventually(t, patience, "the shadow says that the node fell back", func() error {
		sh, _, err := shadow.Read(t.Context())
		if err == nil && (sh.Status.Report.Phase != "FailedClean" || sh.Status.Report.Revision != bad.Name+"@"+bad.Digest || sh.Status.Current.Name != v1.Name ||
			sh.Status.Reason == "") {
			err = fmt.Errorf("it says %+v", sh.Status)
		}
		return err
	})
	n.says(t, corev1.ConditionFalse, fellBack(good),
		fmt.Sprintf("failed to run current (UID: %s), crash loop: 2 unexplained restarts, tolerated: 1", crash.UID))
	n.runs(t, good)
}

// turn patches, because the reference controller may write the Rollout at any time: an update of what was read before would be refused.
func (n *steered) turn(t *testing.T, to v1alpha1.PinnedRevision) error {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec": {"revision": {"name": %q, "digest": %q}}}`, to.Name, to.Digest)
	_, err := n.s.Client.Resource(v1alpha1.RolloutsResource).Patch(t.Context(), rolloutstage.Domain, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
