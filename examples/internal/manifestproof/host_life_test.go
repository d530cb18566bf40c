// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/testenv"
	rolloutkube "github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	rollout "github.com/belayproject/belay/rollout/v1alpha1"
)

// A host is a node whose agent has the certificate of its kubelet, and who does what docs/host-agent.md says.
type host struct {
	*cluster
	*e2e.Agent
	t         *testing.T
	node, uid string
	page      string
	words     *strings.Replacer // what stands for something of this host on the page
}

func newHost(t *testing.T, c *cluster, name string) *host {
	t.Helper()
	node, err := c.env.CreateNode(t.Context(), name)
	must(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, testenv.WriteKubeconfig(kubeconfig, c.env.User(t, "system:node:"+name, "system:nodes")))
	h := &host{cluster: c, Agent: e2e.NewAgent(t, &programs, name, kubeconfig), t: t, node: name, uid: string(node.UID), page: read(t, root+"/docs/host-agent.md")}
	h.words = strings.NewReplacer("NODE-UID", h.uid, "NODE", name)
	return h
}

// documents are the objects on the page of a kind, in order.
func (h *host) documents(kind string) (all []*unstructured.Unstructured) {
	h.t.Helper()
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(h.page, -1) {
		u := &unstructured.Unstructured{}
		must(h.t, yaml.UnmarshalStrict([]byte(h.words.Replace(m[1])), &u.Object))
		if u.GetKind() == kind {
			all = append(all, u)
		}
	}
	return all
}

// configMap runs the command of the page that makes the ConfigMap of a config, makes that, and fills in its name and digest in what comes behind.
func (h *host) configMap(config string) (uid string) {
	h.t.Helper()
	line := regexp.MustCompile(`(?m)^belay-agent (configmap .*) > cm\.yaml$`).FindStringSubmatch(h.page)
	if line == nil {
		h.t.Fatal("the page has no belay-agent configmap")
	}
	file := filepath.Join(h.t.TempDir(), "new.yaml")
	must(h.t, os.WriteFile(file, []byte(config), 0o600))
	text, err := h.Command(h.t, strings.Fields(strings.ReplaceAll(line[1], "new.yaml", file))...)
	must(h.t, err)
	cm := &unstructured.Unstructured{}
	must(h.t, yaml.UnmarshalStrict([]byte(text), &cm.Object))
	h.apply(h.t, []*unstructured.Unstructured{cm})
	digest := regexp.MustCompile(`(?m)^# +digest: (\S+)$`).FindStringSubmatch(text)
	if digest == nil {
		h.t.Fatalf("the command tells no digest:\n%s", text)
	}
	h.words = strings.NewReplacer("NODE-UID", h.uid, "NODE", h.node, "CONFIG-NAME", cm.GetName(), "CONFIG-DIGEST", digest[1])
	made, err := h.api(h.t, cm.GroupVersionKind(), cm.GetNamespace()).Get(h.t.Context(), cm.GetName(), metav1.GetOptions{})
	must(h.t, err)
	return string(made.GetUID())
}

// lacksNothing asks agent doctor for its findings about the API server. server is the level of that check.
func (h *host) lacksNothing(source, server string) {
	h.t.Helper()
	args := append([]string{"doctor", "--unit=", "--output=json", "--source=" + source}, h.Args()[1:]...)
	text, _ := h.Command(h.t, args...) // it exits with 1, as no agent runs
	for check, level := range map[string]string{"server": server, "rights": "ok"} {
		if !regexp.MustCompile(`"check": *"` + check + `",\s*"level": *"` + level + `"`).MatchString(text) {
			h.t.Errorf("with --source=%s the check %s is not %q:\n%s", source, check, level, text)
		}
	}
}

// R-AU-01, R-CS-01: with the rights of the base host-agent, the policy, and the certificate of a kubelet, an agent takes the config of a NodeConfig and of a
// Revision, as docs/host-agent.md has them, and reports; so it does without a Lease.
func TestFirstConfigOfAHost(t *testing.T) {
	h := newHost(t, installed(t), "host-first")
	configs := h.documents("NodeConfig")
	if len(configs) != 2 {
		t.Fatalf("the page has %d NodeConfigs, want one without a source and one with", len(configs))
	}
	h.apply(t, configs[:1])
	h.lacksNothing("nodeconfig", "ok")
	agent := h.Start(t)
	h.reports("the local config", func(u *unstructured.Unstructured) bool { return at(u, "status", "active", "local") == "init" })
	uid := h.configMap(h.Config("maxPods: 42\n"))
	h.apply(t, h.documents("NodeConfig")[1:])
	e2e.Eventually(t, patience, "the config is used", func() error { return h.Promoted(t, uid) })
	h.reports("the new config", func(u *unstructured.Unstructured) bool { return strings.Contains(fmt.Sprint(u.Object["status"]), uid) })
	agent.Stop(t)
	h.rolledOut()
}

// reports waits until the NodeConfig says so.
func (h *host) reports(what string, is func(*unstructured.Unstructured) bool) {
	h.t.Helper()
	e2e.Eventually(h.t, patience, "the NodeConfig tells of "+what, func() error {
		u, err := h.objects.Resource(nodeConfigs).Get(h.t.Context(), h.node, metav1.GetOptions{})
		if err == nil && !is(u) {
			err = fmt.Errorf("its status is %v", u.Object["status"])
		}
		return err
	})
}

// at is a field.
func at(u *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return v
}

// rolledOut has the agent follow the orders of its shadow, which a controller would give.
func (h *host) rolledOut() {
	h.t.Helper()
	uid := h.configMap(h.Config("maxPods: 43\n"))
	revisions := h.documents("Revision")
	h.apply(h.t, revisions)
	h.lacksNothing("shadow", "note") // a controller makes the shadow
	shadows, err := rolloutkube.NewShadows(h.objects)
	must(h.t, err)
	_, err = shadows.Create(h.t.Context(), protocol.NewShadow(h.node, h.uid, protocol.Ledger{}))
	must(h.t, err)
	h.lacksNothing("shadow", "ok")
	h.Flags = append(h.Flags, "--source=shadow", "--verify-for=300ms", "--verify-every=100ms", "--verify-within=60s")
	h.Start(h.t)
	h.phase("", `{"spec":{"revision":{"name":"`+revisions[0].GetName()+`","digest":"`+fmt.Sprint(at(revisions[0], "spec", "digest"))+`"},"grant":1}}`)
	h.phase("Committed", `{"spec":{"proceed":1}}`)
	h.phase("Done", "")
	if err := h.Uses(h.t, uid); err != nil {
		h.t.Error(err)
	}
}

// phase waits for a phase of the attempt, and then gives an order.
func (h *host) phase(want, order string) {
	h.t.Helper()
	shadows := h.objects.Resource(rollout.NodeShadowsResource)
	e2e.Eventually(h.t, patience, "the shadow tells of "+want, func() error {
		u, err := shadows.Get(h.t.Context(), h.node, metav1.GetOptions{})
		if phase, _ := at(u, "status", "phase").(string); err == nil && (phase != want || at(u, "status", "known") != true) {
			err = fmt.Errorf("its status is %v", u.Object["status"])
		}
		return err
	})
	if order != "" {
		_, err := shadows.Patch(h.t.Context(), h.node, types.MergePatchType, []byte(order), metav1.PatchOptions{})
		must(h.t, err)
	}
}
