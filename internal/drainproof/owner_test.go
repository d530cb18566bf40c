// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/testenv"
)

// setCordon writes what kubectl cordon and kubectl uncordon write.
func (c *cluster) setCordon(t *testing.T, node string, unschedulable bool) {
	t.Helper()
	patch := `{"spec":{"unschedulable":null}}`
	if unschedulable {
		patch = `{"spec":{"unschedulable":true}}`
	}
	_, err := c.api.CoreV1().Nodes().Patch(t.Context(), node, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: "kubectl-cordon"})
	must(t, err)
}

// onBothServers runs a test on the cluster whose controllers taint what is cordoned, and on an API server without any.
func onBothServers(t *testing.T, test func(t *testing.T, c *cluster)) {
	for name, env := range map[string]*testenv.Env{"controllers": shared.Env(t), "no controllers": bare.Env(t)} {
		t.Run(name, func(t *testing.T) { test(t, place(t, env)) })
	}
}

// unscheduled makes a Node on which nothing runs.
func (c *cluster) unscheduled(t *testing.T) string {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: c.name + "-"}}
	node, err := c.api.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { _ = c.api.CoreV1().Nodes().Delete(t.Context(), node.Name, metav1.DeleteOptions{}) })
	return node.Name
}

// TestCordonOfAPersonStays opens a drained node and cordons it again as kubectl does; the next drain and its release
// leave that cordon, with the same process and with a new one. The API server knows whose it is by managedFields, with
// and without the taint of the controllers. R-DR-09
func TestCordonOfAPersonStays(t *testing.T) {
	onBothServers(t, func(t *testing.T, c *cluster) {
		type steps struct{ replaced, restarted bool }
		for _, step := range []steps{{false, false}, {false, true}, {true, false}, {true, true}} {
			a, user := c.unscheduled(t), fmt.Sprintf("%s-%t-%t", c.name, step.replaced, step.restarted)
			d := mustConnect(t, c.asDrainer(t, user), nil)
			maintain(t, d, setOf(user, drain.Drain, a), drain.Drained)
			if step.replaced {
				c.setCordon(t, a, false)
				c.setCordon(t, a, true)
			}
			if step.restarted {
				d = mustConnect(t, c.asDrainer(t, user), nil)
			}
			next := setOf(user, drain.Drain, a)
			next.Request.Maintenance = "m2"
			maintain(t, d, next, drain.Drained)
			mark := c.getNode(t, a).Annotations[drain.MarkAnnotation]
			if !step.replaced && !strings.Contains(mark, `"cordonedBy":"belay-drain"`) {
				t.Errorf("%+v: got the mark %s, want it to name who has cordoned the node", step, mark)
			}
			maintain(t, d, setOf(user, drain.Release, a), drain.Released)
			if n := c.getNode(t, a); marked(n) || n.Spec.Unschedulable != step.replaced {
				t.Errorf("%+v: got annotations %v, unschedulable %t, want no mark and %t", step, n.Annotations,
					n.Spec.Unschedulable, step.replaced)
			}
		}
	})
}
