// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
)

// What was applied is observed, by an updater that has been started anew too.
func TestAppliedRevisionIsObserved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "content")
	if seen, err := (content{file}).Observe(t.Context()); err != nil || seen.Current != (protocol.Revision{}) || seen.BootID == "" {
		t.Fatalf("a new node is observed as %+v (%v), want no revision and a boot ID", seen, err)
	}
	for _, name := range []string{"v1", "v2"} {
		want := protocol.ParseRevision(name + "@sha256:" + name)
		if err := (content{file}).Apply(t.Context(), nodeagent.Attempt{Revision: want}); err != nil {
			t.Fatal(err)
		}
		if seen, err := (content{file}).Observe(t.Context()); err != nil || seen.Current != want {
			t.Errorf("got %+v (%v), want %v", seen.Current, err, want)
		}
	}
}

// Without a cluster the program ends with an error.
func TestNoCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	for _, node := range []string{"", "node-1"} {
		if err := run(t.Context(), node, t.TempDir()); err == nil {
			t.Errorf("node %q: no error", node)
		}
	}
}
