// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"

	"github.com/belayproject/belay/rollout/kube"
)

// The rights of the agent of one node.
func ExampleAgentRules() {
	for _, rule := range kube.AgentRules("node-1") {
		fmt.Println(rule.Resources, rule.Verbs, rule.ResourceNames)
	}
	// Output:
	// [nodeshadows] [get list watch] [node-1]
	// [nodeshadows/status] [patch] [node-1]
	// [revisions] [get] []
}
