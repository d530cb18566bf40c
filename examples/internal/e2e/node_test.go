// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/nodetier"
	"github.com/belayproject/belay/internal/testproc"
)

// limit bounds each wait for something that has to happen. It is no measure of how long that takes.
const limit = 3 * time.Minute

// namespace holds the configs.
const namespace = "kube-system"

// node is a machine with an agent that supervises a kubelet.
type node struct {
	t      *testing.T
	env    *testenv.Env
	tier   *nodetier.Tier
	kube   *nodetier.Node
	client *kubernetes.Clientset
	all    dynamic.Interface
	agent  *testenv.Process
	binary string
	state  string
	render string
	good   map[string]any // the fields of the last known good config, where a test keeps them
}

// tries are flags of an agent that tries each config on the node: no kubelet judges it before.
var tries = []string{"--prove-kubelet", "none"}

// newNode starts a control plane, a container runtime and an agent with a kubelet on its init config. The agent tries
// each config.
func newNode(t *testing.T) *node {
	t.Helper()
	return newNodes(t, 1, tries...)[0]
}

// newNodes is newNode with more agents, each with a kubelet of its own, and with further flags.
func newNodes(t *testing.T, count int, flags ...string) []*node {
	t.Helper()
	nodetier.Require(t) // before anything is started
	env := testenv.Start(t, testenv.Options{})
	tier := nodetier.Start(t, env)
	client, err := kube.NewClient(env.Config(), nil)
	must(t, err)
	must(t, kube.Install(t.Context(), env.Config()))
	binary := filepath.Join(t.TempDir(), "agent")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "github.com/belayproject/belay/examples/agent").CombinedOutput()
	if err != nil {
		t.Fatalf("building the agent: %v\n%s", err, out)
	}
	var all []*node
	for i := range count {
		kubeletNode, err := tier.NewNode(fmt.Sprintf("n%d", i+1))
		must(t, err)
		n := &node{
			t: t, env: env, tier: tier, kube: kubeletNode, client: kubernetes.NewForConfigOrDie(env.Config()),
			all: client, binary: binary,
			state: filepath.Join(kubeletNode.Dir, "belay"), render: filepath.Join(kubeletNode.Dir, "kubelet-config.yaml"),
		}
		n.start(tier, flags...)
		all = append(all, n)
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start writes the init config, gives the agent its rights, and runs it.
func (n *node) start(tier *nodetier.Tier, flags ...string) {
	n.t.Helper()
	init := filepath.Join(n.kube.Dir, "init.yaml")
	must(n.t, os.WriteFile(init, n.config(nil), 0o600))
	argv := []string{
		n.binary, "run", "--node-name", n.kube.Name, "--kubeconfig", n.credentials(), "--state-dir", n.state,
		"--init-config", init, "--render", n.render, "--source", "nodeconfig",
		"--probe-interval", "1s", "--min-trial", "1s", "--backoff-min", "200ms", "--backoff-max", "2s",
		"--retry-min", "200ms", "--retry-max", "5s",
	}
	argv = slices.Concat(argv, flags, []string{"--", tier.KubeletProgram()}, n.kube.Args(n.render))
	n.agent = n.env.Process("agent-"+n.kube.Name, argv, n.kube.Healthy)
	ctx, cancel := context.WithTimeout(n.t.Context(), limit)
	defer cancel()
	if err := n.agent.Start(ctx); err != nil {
		n.t.Fatalf("starting the agent: %v\n%s", err, n.tail())
	}
	n.t.Cleanup(func() {
		if n.t.Failed() {
			n.t.Logf("the end of the agent's and the kubelet's log:\n%s", n.tail())
		}
	})
}

func (n *node) tail() string {
	raw, err := os.ReadFile(n.agent.Log())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(raw), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// credentials are those of an agent: what package kube asks for, and no more.
func (n *node) credentials() string {
	n.t.Helper()
	user := "belay-agent-" + n.kube.Name
	cluster, lease := kubelet.ProbeRules(n.kube.Name)
	n.grant(user, slices.Concat(kube.NodeConfigRules(n.kube.Name), kube.NodeConditionRules(n.kube.Name), cluster), lease)
	path := filepath.Join(n.kube.Dir, "agent.kubeconfig")
	must(n.t, testenv.WriteKubeconfig(path, n.env.User(n.t, user)))
	return path
}

// grant gives user the rules of the cluster, that on the node's Lease, and the right to read configs.
func (n *node) grant(user string, rules, lease []rbacv1.PolicyRule) {
	n.t.Helper()
	rbac, meta := n.client.RbacV1(), metav1.ObjectMeta{Name: user}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	_, err := rbac.ClusterRoles().Create(n.t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	must(n.t, err)
	_, err = rbac.ClusterRoleBindings().Create(n.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
	}, metav1.CreateOptions{})
	must(n.t, err)
	for ns, rules := range map[string][]rbacv1.PolicyRule{namespace: kube.ConfigMapRules(),
		corev1.NamespaceNodeLease: lease} {
		_, err = rbac.Roles(ns).Create(n.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		must(n.t, err)
		_, err = rbac.RoleBindings(ns).Create(n.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		}, metav1.CreateOptions{})
		must(n.t, err)
	}
}

// config is a KubeletConfiguration that runs on this machine, but for the given fields.
func (n *node) config(fields map[string]any) []byte {
	n.t.Helper()
	raw, err := n.kube.Config(fields)
	must(n.t, err)
	return raw
}

// push creates an immutable ConfigMap and names it as the config of the node.
func (n *node) push(name, trial string, fields map[string]any) *corev1.ConfigMap {
	n.t.Helper()
	return n.pushLimits(name, trial, "2", fields)
}

// pushLimits is push with a number of tolerated crashes.
func (n *node) pushLimits(name, trial, crashes string, fields map[string]any) *corev1.ConfigMap {
	n.t.Helper()
	immutable := true
	cm, err := n.client.CoreV1().ConfigMaps(namespace).Create(n.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Immutable: &immutable,
		Data: map[string]string{
			"kubelet": string(n.config(fields)), configsync.KeyTrialDuration: trial,
			configsync.KeyCrashLoopThreshold: crashes, configsync.KeyMinHealthyRun: "5s", configsync.KeyProbeDeadline: "40s",
		},
	}, metav1.CreateOptions{})
	must(n.t, err)
	spec := map[string]any{"source": map[string]any{"configMapRef": map[string]any{
		"namespace": cm.Namespace, "name": cm.Name, "uid": string(cm.UID),
	}}}
	client := n.all.Resource(v1alpha1.NodeConfigsResource)
	patch, err := json.Marshal(map[string]any{"spec": spec})
	must(n.t, err)
	_, err = client.Patch(n.t.Context(), n.kube.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && strings.Contains(err.Error(), "not found") {
		_, err = client.Create(n.t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.NodeConfigKind,
			"metadata": map[string]any{"name": n.kube.Name}, "spec": spec,
		}}, metav1.CreateOptions{})
	}
	must(n.t, err)
	return cm
}

// until waits for something that has to happen.
func (n *node) until(what string, done func() error) {
	n.t.Helper()
	if err := testproc.Poll(limit, done); err != nil {
		n.t.Fatalf("waiting for %s: %v", what, err)
	}
}

// rendered checks what the kubelet's file holds.
func (n *node) rendered(fields map[string]any) error {
	got, err := os.ReadFile(n.render)
	if err != nil {
		return err
	}
	if string(got) != string(n.config(fields)) {
		return errors.New("the kubelet's file holds another config")
	}
	return nil
}

// answers checks that the kubelet that runs now was started with the config that has these fields, by its rendered file
// and its healthz.
func (n *node) answers(fields map[string]any) error {
	if err := n.rendered(fields); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(n.t.Context(), 5*time.Second)
	defer cancel()
	return n.kube.Healthy(ctx)
}

// condition is one condition of the Node.
func (n *node) condition(kind corev1.NodeConditionType) (corev1.NodeCondition, error) {
	ctx, cancel := context.WithTimeout(n.t.Context(), 5*time.Second)
	defer cancel()
	got, err := n.client.CoreV1().Nodes().Get(ctx, n.kube.Name, metav1.GetOptions{})
	if err != nil {
		return corev1.NodeCondition{}, err
	}
	for _, c := range got.Status.Conditions {
		if c.Type == kind {
			return c, nil
		}
	}
	return corev1.NodeCondition{}, fmt.Errorf("the Node has no condition %q", kind)
}

// reports waits until the Node is Ready after since and its ConfigOK condition is as wanted.
func (n *node) reports(since time.Time, want corev1.NodeCondition) {
	n.t.Helper()
	n.until("the Node's conditions", func() error {
		ready, err := n.condition(corev1.NodeReady)
		if err != nil {
			return err
		}
		if ready.Status != corev1.ConditionTrue || ready.LastHeartbeatTime.Time.Before(since.Truncate(time.Second)) {
			return fmt.Errorf("ready is %s, last heard of at %s: %s", ready.Status, ready.LastHeartbeatTime.Time, ready.Message)
		}
		got, err := n.condition("ConfigOK")
		if err != nil {
			return err
		}
		if got.Status != want.Status || got.Reason != want.Reason || got.Message != want.Message {
			return fmt.Errorf("ConfigOK is %s, %q, %q; want %s, %q, %q",
				got.Status, got.Message, got.Reason, want.Status, want.Message, want.Reason)
		}
		return nil
	})
}

// status is the status of the NodeConfig.
func (n *node) status() (v1alpha1.NodeConfigStatus, error) {
	ctx, cancel := context.WithTimeout(n.t.Context(), 5*time.Second)
	defer cancel()
	var nc v1alpha1.NodeConfig
	u, err := n.all.Resource(v1alpha1.NodeConfigsResource).Get(ctx, n.kube.Name, metav1.GetOptions{})
	if err != nil {
		return nc.Status, err
	}
	raw, err := u.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, &nc)
	}
	return nc.Status, err
}

// left says, as an error, what is missing for cm to have been left for the last known good config.
func (n *node) left(cm *corev1.ConfigMap) error {
	c, err := n.condition("ConfigOK")
	named := strings.Contains(c.Reason, "failed to run current (UID: "+string(cm.UID)+")")
	if err == nil && (c.Status != corev1.ConditionFalse || !named) {
		err = fmt.Errorf("ConfigOK is %s, %q, %q", c.Status, c.Message, c.Reason)
	}
	return err
}

// promoted waits until cm is the last known good config.
func (n *node) promoted(cm *corev1.ConfigMap) {
	n.t.Helper()
	n.until("the promotion of "+cm.Name, func() error {
		s, err := n.status()
		if err != nil {
			return err
		}
		if s.LastKnownGood == nil || s.LastKnownGood.ConfigMapRef == nil || s.LastKnownGood.ConfigMapRef.UID != string(cm.UID) {
			return fmt.Errorf("the last known good config is %+v, the trial %+v", s.LastKnownGood, s.Trial)
		}
		return nil
	})
}
