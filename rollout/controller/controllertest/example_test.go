// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controllertest_test

import (
	"context"
	"fmt"

	"github.com/belayproject/belay/rollout/controller/controllertest"
	"github.com/belayproject/belay/rollout/protocol"
)

// The cluster sees what must not be: here something empties a node that has no slot.
func ExampleCluster_Broken() {
	cluster := controllertest.New(controllertest.Options{})
	cluster.AddNode("a", nil, protocol.Revision{Name: "v1"})
	ctx, drainer, uid := context.Background(), cluster.Connect().Options().Drainer, cluster.Node("a").UID
	if _, err := drainer.Cordon(ctx, "a", uid, 7, true); err != nil {
		fmt.Println(err)
		return
	}
	if _, _, _, err := drainer.Drain(ctx, "a", uid, 7, false); err != nil {
		fmt.Println(err)
		return
	}
	for _, broken := range cluster.Broken() {
		fmt.Println(broken)
	}
	// Output: pods of node "a" are evicted for attempt 7, and it has no slot
}
