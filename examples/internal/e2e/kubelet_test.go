// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/internal/tier"
)

// ok is the ConfigOK condition of a node that uses what is wanted.
func ok(cm *corev1.ConfigMap) corev1.NodeCondition {
	return corev1.NodeCondition{Status: corev1.ConditionTrue, Reason: "all checks passed", Message: "using current (UID: " + string(cm.UID) + ")"}
}

// fatal is a config that decodes, passes every check of the agent and every check of the kubelet's own validation, and
// makes the real kubelet exit: the static CPU manager policy needs reserved CPUs, which is found out only at a start.
// Each round has bytes of its own: those that were rejected once are not tried again.
func fatal(round int) map[string]any {
	return map[string]any{"cpuManagerPolicy": "static", "maxPods": 42 + round}
}

// TestRealKubeletSurvivesBadConfig is the main job on real components: v1 is adopted and promoted; v2 decodes, passes
// its checks and makes the kubelet exit; the node goes back to v1 by itself and says why; v3 is adopted and promoted.
// Then all of it again with the API server down during the rollback. R-CS-04, R-CS-16, R-CS-18, R-CS-20, R-CS-39,
// R-CS-42, R-CS-46, R-CS-56, R-CS-61, R-CS-71. L-CS-29.
func TestRealKubeletSurvivesBadConfig(t *testing.T) {
	tier.System(t, tier.Root, tier.Kubelet)
	n := newNode(t)
	n.reports(time.Time{}, corev1.NodeCondition{
		Status: corev1.ConditionUnknown, Message: "using current (init)", Reason: n.missing(),
	})
	for i, down := range []bool{false, true} {
		round := string(rune('a' + i))
		v1 := map[string]any{"maxPods": 11 + i}
		good := n.push("v1"+round, "10s", v1)
		n.until("the adoption of v1", func() error { return n.answers(v1) })
		n.promoted(good)
		n.reports(time.Time{}, ok(good))

		pushed := time.Now()
		bad := n.push("v2"+round, "10m", fatal(i))
		n.until("the first start with v2", func() error { return n.rendered(fatal(i)) })
		if down {
			must(t, n.env.APIServer().Kill())
		}
		n.until("the rollback to v1", func() error { return n.answers(v1) })
		t.Logf("rolled back %s after the push of v2, API server down: %t; the trial of v2 is 10m", time.Since(pushed).Round(100*time.Millisecond), down)
		if down {
			n.knowsOffline(bad)
			must(t, n.env.APIServer().Start(t.Context()))
		}
		back := time.Now()
		n.reports(back, corev1.NodeCondition{
			Status: corev1.ConditionFalse, Message: "using last known good: (UID: " + string(good.UID) + ")",
			Reason: "failed to run current (UID: " + string(bad.UID) + "), crash loop: 3 unexplained restarts, tolerated: 2",
		})
		n.rejected(bad)

		v3 := map[string]any{"maxPods": 31 + i}
		next := n.push("v3"+round, "10s", v3)
		n.until("the adoption of v3", func() error { return n.answers(v3) })
		n.promoted(next)
		n.reports(time.Time{}, ok(next))
	}
}

// missing is the reason of a node that no NodeConfig was made for yet, as the agent words it.
func (n *node) missing() string {
	n.t.Helper()
	var reason string
	n.until("a first report", func() error {
		c, err := n.condition("ConfigOK")
		reason = c.Reason
		return err
	})
	if !strings.HasPrefix(reason, "failed to sync, desired config unclear, cause: ") || !strings.Contains(reason, `NodeConfig "n1"`) {
		n.t.Errorf("the reason is %q, want one that names the missing NodeConfig", reason)
	}
	return reason
}

// rejected waits until the status lists cm with its reason: that is written after the condition, by a request of its
// own.
func (n *node) rejected(cm *corev1.ConfigMap) {
	n.t.Helper()
	n.until("the rejection of "+cm.Name, func() error {
		s, err := n.status()
		if err != nil {
			return err
		}
		if len(s.Rejected) == 0 || s.Rejected[0].UID != string(cm.UID) || !strings.Contains(s.Rejected[0].Reason, "crash loop") {
			return fmt.Errorf("the status lists %+v, want %s first, rejected for a crash loop", s.Rejected, cm.Name)
		}
		return nil
	})
}

// knowsOffline asks the agent itself, as a person on the machine does while there is no API server.
func (n *node) knowsOffline(bad *corev1.ConfigMap) {
	n.t.Helper()
	out, err := exec.CommandContext(n.t.Context(), n.binary, "status", "--state-dir", n.state, "-o", "json").Output()
	if err != nil {
		n.t.Errorf("agent status: %v\n%s", err, out)
	}
	if !json.Valid(out) || !strings.Contains(string(out), "failed to run current (UID: "+string(bad.UID)+")") {
		n.t.Errorf("agent status does not say why %s is avoided:\n%s", bad.Name, out)
	}
}
