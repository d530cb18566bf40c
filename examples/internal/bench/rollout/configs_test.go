// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"testing"
)

// What an agent asks about its shadow is of the rollout, a read of its Node may be of either, and everything else is of its config: nothing is left out.
func TestSharesLeaveNoCallOut(t *testing.T) {
	protocol, node, config := shares(map[string]int{
		"get nodes": 7, "get nodeshadows": 1, "patch nodeshadows/status": 2, "patch nodeshadows/status in vain": 3, "get revisions": 4, "get configmaps": 5, "patch nodes/status": 6,
	})
	if want := map[string]int{"get nodeshadows": 1, "patch nodeshadows/status": 2, "patch nodeshadows/status in vain": 3}; !maps.Equal(protocol, want) {
		t.Errorf("got %v of the rollout, want %v", protocol, want)
	}
	if want := map[string]int{"get revisions": 4, "get configmaps": 5, "patch nodes/status": 6}; !maps.Equal(config, want) {
		t.Errorf("got %v of the config, want %v", config, want)
	}
	if got := sum(protocol) + sum(node) + sum(config); got != 28 || node["get nodes"] != 7 {
		t.Errorf("got %d calls in all, want 28, and %v for either, want 7", got, node)
	}
}
