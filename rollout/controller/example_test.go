// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/controller/controllertest"
	"github.com/belayproject/belay/rollout/protocol"
)

// A controller takes a revision over three nodes, two at a time. The cluster here is in memory; the agents take a step after each pass.
func ExampleController_Reconcile() {
	cluster := controllertest.New(controllertest.Options{})
	for _, name := range []string{"a", "b", "c"} {
		cluster.AddNode(name, nil, protocol.Revision{Name: "v1", Digest: "sha256:11"})
	}
	cluster.PutRollout("all", rollout.Policy{
		UID: "rollout-1", Target: rollout.Revision{Name: "v2", Digest: "sha256:22"},
		Groups: []rollout.Group{{Name: "all", Selector: labels.Everything()}},
		Caps:   []rollout.Cap{{Scope: rollout.Total, Max: intstr.FromInt32(2)}},
	})
	c, err := controller.New(cluster.Connect().Options())
	if err != nil {
		fmt.Println(err)
		return
	}
	most := 0
	for cluster.Runs("v2") < 3 {
		if _, err := c.Reconcile(context.Background(), ""); err != nil {
			fmt.Println(err)
			return
		}
		most = max(most, len(cluster.Ledger().Slots))
		cluster.Agents()
	}
	fmt.Println(cluster.Runs("v2"), "nodes run v2, at most", most, "at a time")
	// Output: 3 nodes run v2, at most 2 at a time
}
