// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kube/internal/matrix"
	"github.com/belayproject/belay/lkg"
)

// most is how many bytes of values the API server takes in a ConfigMap.
const most = 1 << 20

// bomb is a document of some hundred bytes that means ten to the power of nine strings.
func bomb() string {
	var b strings.Builder
	b.WriteString("l0: &l0 lol\n")
	for i := 1; i <= 9; i++ {
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d, ", i-1), 10), ", "))
	}
	return b.String() + "payload: *l9\n"
}

// filled is a valid document whose last line is a comment that makes it size bytes long.
func filled(size int, with string) string {
	line := text(matrix.GoodB) + "# "
	return line + strings.Repeat(with, size-len(line))
}

// hostile is a payload that the API server takes and a node must not.
type hostile struct {
	name, payload string
	status        lkg.Status
	cause         string // part of reason or error
}

func hostiles() []hostile {
	return []hostile{
		// The server writes each of these characters as six bytes of JSON. That counts as no answer, which leaves a False of before as
		// it is: so this one is first.
		{"larger on the way", filled(most-len(matrix.Key), "<"), lkg.StatusUnknown, "too large"},
		{"as large as can be used", filled(most-len(matrix.Key), "x"), lkg.StatusFalse, "failed to load current"},
		{"as large as the server takes", filled(most, "x"), lkg.StatusUnknown, "at most 1048576 are taken"},
		{"bomb", bomb(), lkg.StatusFalse, "failed to load current"},
		{"deep", strings.Repeat("[", 200_000), lkg.StatusFalse, "failed to load current"},
		{"not text", "payload: \x00\x01", lkg.StatusFalse, "failed to load current"},
	}
}

// createData makes an immutable ConfigMap of any text. Protocol buffers don't blow it up on its way to the server.
func (c *cluster) createData(t *testing.T, name string, data map[string]string) matrix.Ref {
	t.Helper()
	config := rest.CopyConfig(c.env.Config())
	config.ContentType = "application/vnd.kubernetes.protobuf"
	made, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(c.namespace).Create(deadline(t), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Immutable: ptr.To(true), Data: data,
	}, metav1.CreateOptions{})
	must(t, err)
	return refTo(made)
}

// good assigns a config that is promoted at once, and waits for that.
func (n *liveNode) good(t *testing.T, c *cluster, name string, p matrix.Payload) matrix.Ref {
	t.Helper()
	r, err := c.Create(deadline(t), matrix.ConfigMap{Name: name, Immutable: true, Brief: true, Payloads: map[string]matrix.Payload{matrix.Key: p}})
	must(t, err)
	must(t, c.assignNodeConfig(deadline(t), r.Source()))
	n.is(t, c, matrix.Step{Name: name, Node: matrix.Node{Active: p, Status: lkg.StatusTrue, Good: p}})
	return r
}

// TestHostilePayloadsLeaveALiveNodeOnAGoodConfig sends a live node what the API server takes and no parser should be given, one
// after the other. It stays on its good config, without a restart, says why, and takes the next good one. R-CS-16, R-CS-39, R-CS-40.
// S-CS-02.
func TestHostilePayloadsLeaveALiveNodeOnAGoodConfig(t *testing.T) {
	c := newCluster(t)
	must(t, c.assignNodeConfig(deadline(t), ""))
	source, err := kube.NewNodeConfigSource(c.client, c.node, kube.Options{})
	must(t, err)
	status, err := kube.NewStatusReporter(c.client, c.node, kube.Options{})
	must(t, err)
	condition, err := kube.NewNodeConditionReporter(c.client, c.node, kube.Options{})
	must(t, err)
	n := c.live(t, source, status, condition)
	v1 := n.good(t, c, "v1", matrix.GoodA)
	starts := len(n.child.Starts())
	for i, h := range hostiles() {
		bad := c.createData(t, fmt.Sprintf("hostile-%d", i), map[string]string{matrix.Key: h.payload})
		must(t, c.assignNodeConfig(deadline(t), bad.Source()))
		eventually(t, h.name, func() error { return n.refuses(h, bad, v1) })
		eventually(t, "the Node's condition after "+h.name, func() error {
			got := c.conditionOf(t)
			if last := n.report.Last().Condition; got.Message != last.Message || got.Reason != last.Reason {
				return fmt.Errorf("the Node's condition is %+v, want %+v", got, last)
			}
			return nil
		})
		if got := len(n.child.Starts()); got != starts {
			t.Errorf("%s: the child was started %d times, want the %d of before", h.name, got, starts)
		}
	}
	n.good(t, c, "v2", matrix.GoodB)
}

// refuses says, as an error, what is missing for the node to be on v1 because of what is wrong with bad.
func (n *liveNode) refuses(h hostile, bad, v1 matrix.Ref) error {
	s := n.report.Last()
	told := s.Condition.Reason + s.Error
	switch {
	case s.Active.UID != v1.UID || s.LastKnownGood.UID != v1.UID:
		return fmt.Errorf("active is %+v, last known good %+v, want %+v", s.Active, s.LastKnownGood, v1)
	case s.Condition.Status != h.status || !strings.Contains(told, h.cause):
		return fmt.Errorf("condition %+v, error %q, want status %s and %q", s.Condition, s.Error, h.status, h.cause)
	case h.status == lkg.StatusFalse && !strings.Contains(told, bad.UID):
		return fmt.Errorf("%q does not name %s", told, bad.UID)
	}
	return nil
}
