// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/internal/tier"
)

// harmNodes are the machines that share the configs: kubelets spend most of a start waiting.
const harmNodes = 3

// TestRealKubeletSurvivesHarmfulConfigs rolls configs out with which a kubelet does not run, one after the other, on
// agents with the default flags, so that the installed kubelet judges each before it is tried: after each, the node is
// Ready on the config before, and its condition says False and names the config that failed. After the last, a good
// one is adopted. R-CS-18, R-CS-20, L-CS-02, L-CS-42.
func TestRealKubeletSurvivesHarmfulConfigs(t *testing.T) {
	tier.System(t, tier.Root, tier.Kubelet)
	surviveAll(t)
}

// TestRealKubeletRollsHarmfulConfigsBack is the same on agents that try each config, so that each goes forward and
// back. R-CS-18, R-CS-20, L-CS-02, L-CS-42.
func TestRealKubeletRollsHarmfulConfigsBack(t *testing.T) {
	tier.System(t, tier.Root, tier.Kubelet)
	surviveAll(t, tries...)
}

// surviveAll rolls all harmful configs out on agents with these flags.
func surviveAll(t *testing.T, flags ...string) {
	t.Helper()
	nodes := newNodes(t, harmNodes, flags...)
	all := harms()
	for i, n := range nodes {
		t.Run(n.kube.Name, func(t *testing.T) {
			t.Parallel()
			n.t = t
			n.good = map[string]any{"maxPods": 30}
			good := n.push(n.kube.Name+"-good", "1s", n.good)
			n.promoted(good)
			for k := i; k < len(all); k += len(nodes) {
				n.survives(all[k], fmt.Sprintf("%s-harm-%d", n.kube.Name, k))
			}
			n.good = map[string]any{"maxPods": 31}
			last := n.push(n.kube.Name+"-last", "1s", n.good)
			n.until("the adoption of a good config", func() error { return n.answers(n.good) })
			n.promoted(last)
			n.reports(time.Time{}, ok(last))
		})
	}
}

// survives pushes a harmful config, and waits until the node is back.
func (n *node) survives(h harm, name string) {
	n.t.Helper()
	began := time.Now()
	cm := n.pushLimits(name, "10m", "0", n.harmful(h))
	n.until(fmt.Sprintf("the node to say that %q failed", h.config), func() error { return n.blames(cm) })
	n.until(fmt.Sprintf("the way back from %q", h.config), func() error { return n.answers(n.good) })
	ready, err := n.condition(corev1.NodeReady)
	if err != nil || ready.Status != corev1.ConditionTrue {
		n.t.Errorf("after %q the node is %+v, %v, want it Ready", h.config, ready, err)
	}
	n.t.Logf("%s: %s", h.config, time.Since(began).Round(100*time.Millisecond))
}

// blames says, as an error, what is missing for the node's condition to name cm as the config that failed.
func (n *node) blames(cm *corev1.ConfigMap) error {
	c, err := n.condition("ConfigOK")
	named := strings.Contains(c.Reason, "current (UID: "+string(cm.UID)+")")
	if err == nil && (c.Status != corev1.ConditionFalse || !named) {
		err = fmt.Errorf("ConfigOK is %s, %q, %q", c.Status, c.Message, c.Reason)
	}
	return err
}

// harmful are the fields of a config on this machine.
func (n *node) harmful(h harm) map[string]any {
	n.t.Helper()
	garbage := filepath.Join(n.kube.Dir, "garbage")
	must(n.t, os.WriteFile(garbage, []byte("garbage\n"), 0o600))
	base := n.kube.BaseConfig()
	text := strings.NewReplacer(
		"GARBAGE", garbage, "NONE", filepath.Join(n.kube.Dir, "none"),
		"HEALTHZ", strconv.Itoa(n.kube.HealthzPort), "PORT", fmt.Sprint(base["port"]),
	).Replace(h.config)
	var fields map[string]any
	must(n.t, yaml.Unmarshal([]byte(text), &fields))
	if x509, ok := fields["authentication"]; ok {
		auth, _ := base["authentication"].(map[string]any)
		more, _ := x509.(map[string]any)
		fields["authentication"] = withFields(auth, more)
	}
	return fields
}
