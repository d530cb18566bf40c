// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// registryCache is a cache that has one node.
type registryCache struct {
	Cache
	node *corev1.Node
}

// Node implements [Cache].
func (c registryCache) Node(string) *corev1.Node { return c.node }

// R-DR-07: passes of several holders write the same node, and an answer that comes late does not bring back what was before the other write.
func TestLateAnswerDoesNotHideALaterWrite(t *testing.T) {
	at := func(version string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u", ResourceVersion: version}}
	}
	g, cache := newRegistry(), registryCache{node: at("5")}
	g.wrote(cache, at("7"))
	g.wrote(cache, at("6"))
	if got := g.newest(cache, "n1").ResourceVersion; got != "7" {
		t.Errorf("newest: got version %s, want 7", got)
	}
	cache.node = at("8")
	if got := g.newest(cache, "n1").ResourceVersion; got != "8" {
		t.Errorf("newest of a cache that is ahead: got version %s, want 8", got)
	}
}
