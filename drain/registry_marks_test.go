// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A set looks at the marks of all its nodes whenever one of them changes: an unchanged mark costs nothing.
func TestUnchangedMarkIsDecodedOnce(t *testing.T) {
	g := newRegistry()
	node := &corev1.Node{}
	node.Name = "n1"
	node.Annotations = map[string]string{MarkAnnotation: `{"holders":[{"holder":"a","mode":"Drain"}]}`}
	read := func(want string) {
		t.Helper()
		m, err := g.markOf(node)
		if err != nil || len(m.Holders) != 1 || m.Holders[0].Holder != want {
			t.Errorf("got %+v, %v, want the entry of %q", m, err, want)
		}
	}
	read("a")
	if n := testing.AllocsPerRun(10, func() { read("a") }); n > 0 {
		t.Errorf("got %v allocations for a mark that has not changed, want none", n)
	}
	node.Annotations[MarkAnnotation] = `{"holders":[{"holder":"b","mode":"Drain"}]}`
	read("b")
	node.Annotations[MarkAnnotation] = `{`
	if _, err := g.markOf(node); err == nil {
		t.Error("got no error for a mark that cannot be read")
	}
	delete(node.Annotations, MarkAnnotation)
	if m, err := g.markOf(node); err != nil || m.held() || len(g.marks) != 0 {
		t.Errorf("got %+v, %v, %d kept, want no mark and nothing kept", m, err, len(g.marks))
	}
}
