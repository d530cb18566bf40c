// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/maintenance"
	"github.com/belayproject/belay/drain/v1alpha1"
	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
	rolloutv1alpha1 "github.com/belayproject/belay/rollout/v1alpha1"
)

// A maintenanceStage is a cluster with the shipped controller, which has the rights of the manifests and no others.
type maintenanceStage struct {
	*testing.T
	env     *testenv.Env
	core    kubernetes.Interface
	objects dynamic.ResourceInterface
	reader  maintenance.Client
	config  string
}

func newMaintenanceStage(t *testing.T) *maintenanceStage {
	t.Helper()
	env := testenv.Start(t, testenv.Options{With: []testenv.Component{testenv.Kwok}, AuditPolicy: auditPolicy})
	must(t, env.InstallCRDs(t.Context(), slices.Concat(rolloutv1alpha1.CRDs(), v1alpha1.CRDs())...))
	for _, path := range []string{"controller/rbac.yaml", "node-maintenance/rbac.yaml"} {
		e2e.Apply(t, env.Config(), "../../manifests/"+path)
	}
	client := dynamic.NewForConfigOrDie(env.Config())
	reader, err := maintenance.NewClient(client)
	must(t, err)
	s := &maintenanceStage{
		T: t, env: env, core: kubernetes.NewForConfigOrDie(env.Config()), reader: reader,
		objects: client.Resource(v1alpha1.NodeMaintenancesResource), config: userConfig(t, env),
	}
	objects := authorizationv1.ResourceAttributes{Group: "belay.dev", Resource: "nodemaintenances", Verb: "list"}
	leases := authorizationv1.ResourceAttributes{Group: "coordination.k8s.io", Resource: "leases", Verb: "update"}
	leases.Namespace = corev1.NamespaceNodeLease
	mayBegin(t, s.core, objects, leases)
	return s
}

func (s *maintenanceStage) start() *replica {
	s.Helper()
	r := startWith(s.T, s.env, s.config, func(c *exec.Cmd) { c.Args = append(c.Args, "--node-maintenance") })
	r.awaits("leads", `belay_leader{name="node-maintenance"} 1`)
	return r
}

// node makes a node that kwok plays, and waits until it is ready.
func (s *maintenanceStage) node(name string) {
	s.Helper()
	_, err := s.env.CreateNode(s.Context(), name, testenv.KwokNode, func(n *corev1.Node) { n.Labels["rack"] = "r1" })
	must(s.T, err)
	s.eventually("node "+name+" is ready", func() error {
		n, err := s.core.CoreV1().Nodes().Get(s.Context(), name, metav1.GetOptions{})
		if err == nil && !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			err = fmt.Errorf("conditions %v", n.Status.Conditions)
		}
		return err
	})
}

// pod makes a pod on a node, and waits until it runs. One that is managed would be made anew, if its owner were
// there.
func (s *maintenanceStage) pod(name, node string, managed bool) {
	s.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.PodSpec{
		NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "none"}},
	}}
	if yes := true; managed {
		p.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u-web", Controller: &yes},
		}
	}
	_, err := s.core.CoreV1().Pods("default").Create(s.Context(), p, metav1.CreateOptions{})
	must(s.T, err)
	s.eventually("pod "+name+" runs", func() error {
		p, err := s.core.CoreV1().Pods("default").Get(s.Context(), name, metav1.GetOptions{})
		if err == nil && p.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("it is %s", p.Status.Phase)
		}
		return err
	})
}

// lease makes the Lease of a node, as its kubelet would.
func (s *maintenanceStage) lease(node string) {
	s.Helper()
	seconds, now := int32(40), metav1.NowMicro()
	_, err := s.core.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(s.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, metav1.CreateOptions{})
	must(s.T, err)
}

// apply creates an object from the YAML of its spec.
func (s *maintenanceStage) apply(name, spec string) {
	s.Helper()
	u := &unstructured.Unstructured{}
	text := "apiVersion: belay.dev/v1alpha1\nkind: NodeMaintenance\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
	must(s.T, yaml.Unmarshal([]byte(text), &u.Object))
	_, err := s.objects.Create(s.Context(), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	must(s.T, err)
}

func (s *maintenanceStage) remove(name string) {
	s.Helper()
	must(s.T, s.objects.Delete(s.Context(), name, metav1.DeleteOptions{}))
	s.eventually("object "+name+" is gone", func() error {
		u, err := s.objects.Get(s.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there (%w): %v", err, u)
	})
}

// becomes waits until a condition of an object is True, as kubectl wait --for=condition does, and returns the status.
func (s *maintenanceStage) becomes(name, condition string) (st v1alpha1.NodeMaintenanceStatus) {
	s.Helper()
	s.eventually(name+" is "+condition, func() error {
		u, err := s.objects.Get(s.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var o v1alpha1.NodeMaintenance // without its spec, which may be one that nothing can read
		rest := map[string]any{"status": u.Object["status"]}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(rest, &o); err != nil {
			return err
		}
		st = o.Status
		if !meta.IsStatusConditionTrue(st.Conditions, condition) {
			return fmt.Errorf("status %+v", st)
		}
		return nil
	})
	return st
}

func (s *maintenanceStage) eventually(what string, is func() error) {
	s.Helper()
	if err := testproc.Poll(patience, is); err != nil {
		s.Fatalf("it never comes that %s: %v", what, err)
	}
}

// checkNodes compares which nodes are closed, and that the open ones have no mark.
func (s *maintenanceStage) checkNodes(want ...string) {
	s.Helper()
	nodes, err := s.core.CoreV1().Nodes().List(s.Context(), metav1.ListOptions{})
	must(s.T, err)
	var closed []string
	for _, n := range nodes.Items {
		_, marked := n.Annotations[drain.MarkAnnotation]
		if n.Spec.Unschedulable != marked {
			s.Errorf("node %s: closed %t, marked %t", n.Name, n.Spec.Unschedulable, marked)
		}
		if n.Spec.Unschedulable {
			closed = append(closed, n.Name)
		}
	}
	if !slices.Equal(closed, want) {
		s.Errorf("closed are %v, want %v", closed, want)
	}
}

func (s *maintenanceStage) pods() (names []string) {
	s.Helper()
	pods, err := s.core.CoreV1().Pods("default").List(s.Context(), metav1.ListOptions{})
	must(s.T, err)
	for _, p := range pods.Items {
		names = append(names, p.Name)
	}
	return names
}

// The shipped controller with the rights of the manifests: a window that is not open, a preview, a drain that a
// killed process leaves to the next, two objects on one node, a selector, a hold, and what deletion gives back.
func TestNodeMaintenances(t *testing.T) {
	t.Parallel()
	s := newMaintenanceStage(t)
	for _, n := range []string{"n1", "n2", "n3", "n4"} {
		s.node(n)
	}
	s.pod("web-1", "n1", true)
	s.pod("web-2", "n1", true)
	s.pod("alone", "n1", false)
	first := s.start()

	s.apply("later", "nodeName: n1, windows: [{from: '2130-01-01T00:00:00Z'}]")
	st := s.becomes("later", v1alpha1.ConditionReconciling)
	if p := st.Preview; st.Phase != v1alpha1.PhaseWaiting || p == nil || p.Evictions != 2 || p.Blocked != 1 ||
		p.BlockedPods[0].Name != "alone" || p.BlockedPods[0].Reason != string(drain.Unmanaged) {
		t.Errorf("status before the window %+v, preview %+v, want 2 evictions and a blocked pod", st, st.Preview)
	}
	s.checkNodes()
	s.remove("later")

	s.apply("m", "nodeName: n1, reason: disk")
	st = s.becomes("m", v1alpha1.ConditionStalled)
	if st.Phase != v1alpha1.PhaseBlocked || st.Preview.Blocked != 1 || !strings.Contains(st.Message, "default/alone") {
		t.Errorf("status of a drain that is blocked %+v", st)
	}
	if pods := s.pods(); !slices.Equal(pods, []string{"alone"}) {
		t.Errorf("pods %v, want the blocked one alone", pods)
	}
	must(t, first.cmd.Process.Kill())
	<-first.done
	second := s.start()
	must(t, s.core.CoreV1().Pods("default").Delete(t.Context(), "alone", metav1.DeleteOptions{}))
	st = s.becomes("m", v1alpha1.ConditionReady)
	if st.ReadyNodes != 1 || st.Nodes[0].Phase != string(drain.Drained) {
		t.Errorf("status of a drained node %+v", st)
	}
	s.apply("also", "nodeName: n1, mode: Cordon")
	s.becomes("also", v1alpha1.ConditionReady)
	s.remove("m")
	s.checkNodes("n1")
	s.remove("also")
	s.checkNodes()

	s.checkSelector()
	s.checkHoldAndMistakes()
	second.stops()
	for _, line := range denied(t, s.env.AuditLog()) {
		t.Errorf("the manifests give too few rights: %s", line)
	}
}

// checkSelector has three nodes emptied, and given back.
func (s *maintenanceStage) checkSelector() {
	s.Helper()
	for _, n := range []string{"n1", "n2", "n3"} {
		s.pod("web-"+n, n, true)
	}
	s.apply("rack", "maxConcurrent: 1, "+
		"nodeSelector: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n1, n2, n3]}]}")
	if st := s.becomes("rack", v1alpha1.ConditionReady); st.TotalNodes != 3 || st.ReadyNodes != 3 {
		s.Errorf("status of three nodes %+v", st)
	}
	s.checkNodes("n1", "n2", "n3")
	s.remove("rack")
	s.checkNodes()
}

// checkHoldAndMistakes has a node held, and objects that can't be carried out say why.
func (s *maintenanceStage) checkHoldAndMistakes() {
	s.Helper()
	s.lease("n4")
	end := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	s.apply("hold", fmt.Sprintf("nodeName: n4, mode: Hold, deadline: %q", end))
	s.becomes("hold", v1alpha1.ConditionReady)
	s.checkNodes("n4")
	s.apply("wrong", "nodeName: n2, policy: {escalation: [{step: Kill, after: 1m}]}")
	if st := s.becomes("wrong", v1alpha1.ConditionStalled); !strings.Contains(st.Message, "escalation[0].step") {
		s.Errorf("message %q, want the field that is wrong", st.Message)
	}
	s.apply("unread", "nodeName: n2, policy: {settle: 5}")
	if st := s.becomes("unread", v1alpha1.ConditionStalled); !strings.Contains(st.Message, "want a string such as") {
		s.Errorf("message %q, want what would be right", st.Message)
	}
	s.apply("missing", "nodeName: n9")
	s.becomes("missing", v1alpha1.ConditionStalled)
	for _, name := range []string{"hold", "wrong", "unread", "missing"} {
		s.remove(name)
	}
	s.checkNodes()
}

// An object whose finalizer was taken off while no controller was there leaves nothing behind.
func TestNodeMaintenanceWithoutItsFinalizer(t *testing.T) {
	t.Parallel()
	s := newMaintenanceStage(t)
	s.node("n1")
	r := s.start()
	s.apply("m", "nodeName: n1, mode: Cordon")
	s.becomes("m", v1alpha1.ConditionReady)
	r.stops()
	o, err := s.reader.Get(t.Context(), "m")
	must(t, err)
	must(t, s.reader.SetFinalizers(t.Context(), o, []string{}))
	s.remove("m")
	s.start()
	s.eventually("the node is open", func() error {
		n, err := s.core.CoreV1().Nodes().Get(context.WithoutCancel(t.Context()), "n1", metav1.GetOptions{})
		if err == nil && n.Spec.Unschedulable {
			err = fmt.Errorf("annotations %v", n.Annotations)
		}
		return err
	})
}
