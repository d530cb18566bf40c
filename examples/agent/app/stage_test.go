// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

const (
	// patience bounds what takes a rollout of a few nodes.
	patience = 2 * time.Minute
	// agents is the namespace of the manifests, and the name of the account there, of the role and of the policy is that of the agent.
	agents, agentName = "belay-agents", "belay-agent"
	// agentAudit has every request of the agents in the log.
	agentAudit = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n" +
		"rules: [{level: Metadata, users: [\"system:serviceaccount:" + agents + ":" + agentName + "\"]}]\n"
	controllerPackage = "github.com/belayproject/belay/examples/controller"
)

// A stage is a control plane with rollouts, on which agents have what the manifests give them.
type stage struct {
	*rolloutstage.Fleet
	t         *testing.T
	daemonSet *appsv1.DaemonSet
}

// newStage has no nodes yet. At most one may be away at a time.
func newStage(t *testing.T, manifests ...string) *stage {
	t.Helper()
	f, err := rolloutstage.New(t.Context(), rolloutstage.Options{Cap: 1, Bare: true, AuditPolicy: agentAudit})
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	s := &stage{Fleet: f, t: t}
	for _, m := range manifests {
		e2e.Apply(t, f.Env.Config(), filepath.Join("..", "..", "manifests", m))
	}
	labels := map[string]string{"app": agentName}
	s.daemonSet, err = f.Core.AppsV1().DaemonSets(agents).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: agentName},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: agentPod("")},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func agentPod(node string) corev1.PodSpec {
	return corev1.PodSpec{ServiceAccountName: agentName, NodeName: node, Containers: []corev1.Container{{Name: "agent", Image: "example.com/agent"}}}
}

// control starts the reference controller.
func (s *stage) control() {
	s.t.Helper()
	_, err := s.Core.CoreV1().Namespaces().Create(s.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "belay-system"}}, metav1.CreateOptions{})
	must(s.t, err)
	e2e.Start(s.t, programs.Path(s.t, controllerPackage), "--kubeconfig="+s.Env.Kubeconfig(), "--domains="+rolloutstage.Domain, "--lease-duration=5s",
		fmt.Sprintf("--listen=127.0.0.1:%d", testenv.Port(s.t)))
}

// A hooked node is one that is updated by hooks, which keep what it runs in files.
type hooked struct {
	*stage
	own                   *rest.Config // that of its agent
	name, dir, kubeconfig string
}

// hook is every hook. It keeps what the node runs in the directory "node" beside that of the hooks.
const hook = `#!/bin/sh
set -eu
cd "$(dirname "$0")/../node"
case "$BELAY_VERB" in
observe) printf '{"current":%s,"previous":%s,"bootID":"%s","canRevert":true}' "$(cat current)" "$(cat previous)" "$(cat boot)" ;;
disruption) printf '{"disruption":"%s"}' "$(cat disruption)" ;;
verify)
  echo "$BELAY_REVISION" >> verified
  printf '{"verdict":"Pass"}' ;;
apply)
  echo "$BELAY_ATTEMPT $BELAY_REVISION" >> applied
  printf '{"name":"%s","digest":"%s"}' "$BELAY_REVISION" "$BELAY_DIGEST" > next
  if [ "$(cat disruption)" = Reboot ]; then : > rebooting; exit 11; fi
  cp current previous
  mv next current ;;
esac
`

// node joins a node that runs v1, with a pod of the agent, whose token the agent has.
func (s *stage) node(name, disruption string) *hooked {
	t := s.t
	t.Helper()
	_, err := s.Env.CreateNode(t.Context(), name, func(n *corev1.Node) {
		n.Labels["fleet"] = rolloutstage.Domain
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	})
	must(t, err)
	h := &hooked{stage: s, name: name, dir: t.TempDir()}
	h.own = h.config()
	h.kubeconfig = kubeconfig(t, h.own)
	must(t, os.Mkdir(filepath.Join(h.dir, "node"), 0o700))
	must(t, os.Mkdir(filepath.Join(h.dir, "hooks"), 0o700))
	must(t, os.WriteFile(filepath.Join(h.dir, "hooks", ".hook"), []byte(hook), 0o700))
	for _, verb := range []string{"observe", "apply", "verify", "disruption"} {
		must(t, os.Symlink(".hook", filepath.Join(h.dir, "hooks", verb)))
	}
	v1 := fmt.Sprintf(`{"name":"v1","digest":%q}`, v1alpha1.OpaqueDigest("v1"))
	for file, text := range map[string]string{"current": v1, "previous": "{}", "boot": "boot-1", "disruption": disruption, "applied": "", "verified": ""} {
		h.write(file, text)
	}
	return h
}

// config is that of an agent in a pod on the node.
func (h *hooked) config() *rest.Config {
	t := h.t
	t.Helper()
	pods := h.Core.CoreV1().Pods(agents)
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: agentName + "-" + h.name, Labels: h.daemonSet.Spec.Selector.MatchLabels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(h.daemonSet, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Spec: agentPod(h.name),
	}, metav1.CreateOptions{})
	must(t, err)
	pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	must(t, err)
	token, err := h.Core.CoreV1().ServiceAccounts(agents).CreateToken(t.Context(), agentName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
	}, metav1.CreateOptions{})
	must(t, err)
	config := rest.AnonymousClientConfig(h.Env.Config())
	config.BearerToken = token.Status.Token
	return config
}

func (h *hooked) write(file, text string) {
	h.t.Helper()
	must(h.t, os.WriteFile(filepath.Join(h.dir, "node", file), []byte(text), 0o600))
}

func (h *hooked) read(file string) string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, "node", file))
	must(h.t, err)
	return string(text)
}

// agent starts the node's agent, on a state directory of that name.
func (h *hooked) agent(state string, more ...string) *e2e.Process {
	h.t.Helper()
	args := []string{
		"update", "--node-name=" + h.name, "--kubeconfig=" + h.kubeconfig, "--state-dir=" + filepath.Join(h.dir, state), "--hooks=" + filepath.Join(h.dir, "hooks"),
		"--verify-for=300ms", "--verify-every=100ms", "--verify-within=30s", "--retry-min=100ms", "--retry-max=1s",
		"--lease-namespace=" + agents, "--lease-duration=10s", "--guard-policy=" + agentName,
	}
	return e2e.Start(h.t, programs.Path(h.t, e2e.AgentPackage), append(args, more...)...)
}

// reboot has the node come up again with what was applied.
func (h *hooked) reboot() {
	h.t.Helper()
	dir := filepath.Join(h.dir, "node")
	h.write("previous", h.read("current"))
	must(h.t, os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "current")))
	must(h.t, os.Remove(filepath.Join(dir, "rebooting")))
	h.write("boot", "boot-2")
}

// runs checks what the node runs, and that each revision was applied once, in that order, each under an attempt of its own.
func (h *hooked) runs(revisions ...string) {
	h.t.Helper()
	last := revisions[len(revisions)-1]
	if want := fmt.Sprintf(`{"name":%q,"digest":%q}`, last, v1alpha1.OpaqueDigest(last)); h.read("current") != want {
		h.t.Errorf("node %q runs %s, want %s", h.name, h.read("current"), want)
	}
	var got []string
	attempts := map[string]bool{}
	for line := range strings.Lines(h.read("applied")) {
		attempt, revision, _ := strings.Cut(strings.TrimSpace(line), " ")
		got, attempts[attempt] = append(got, revision), true
	}
	if strings.Join(got, " ") != strings.Join(revisions, " ") || len(attempts) != len(revisions) {
		h.t.Errorf("node %q has applied %q in %d attempts, want %q, each once", h.name, got, len(attempts), revisions)
	}
}
