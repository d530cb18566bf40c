// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// The first request is spoilt by a fault, the budget lets one pod go, and the other one waits for a replacement that is ready.
func Example() {
	ctx := context.Background()
	c := draintest.New(draintest.Options{Readiness: time.Minute})
	c.AddNode("n1")
	c.AddWorkload(draintest.Workload{Name: "web", Replicas: 2})
	c.AddBudget(draintest.MinAvailable("default", "web", "1", map[string]string{"app": "web"}))
	c.Faults(draintest.On(draintest.Evict, 1, draintest.Unavailable()))

	pods := c.Pods("n1")
	for _, pod := range []drain.PodRef{draintest.RefTo(pods[0]), draintest.RefTo(pods[0]), draintest.RefTo(pods[1])} {
		err := c.Evict(ctx, pod, nil)
		fmt.Println(pod.Name, drain.Classify(err).Verdict)
	}
	fmt.Println(len(c.Log(draintest.Evict)), "requests")
	// Output:
	// web-00001 Overloaded
	// web-00001 Accepted
	// web-00002 BudgetExhausted
	// 3 requests
}
