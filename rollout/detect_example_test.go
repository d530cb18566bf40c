// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"

	"github.com/belayproject/belay/rollout"
)

// A detector sees one outcome for each node, in order. What was refused or undone is neither a failure nor a success.
func ExampleCUSUM() {
	detector := rollout.CUSUM{}
	var outcomes []rollout.Outcome
	for i, result := range []rollout.Result{
		rollout.Succeeded, rollout.FailedClean, rollout.Refused, rollout.Suspected, rollout.FailedBroken, rollout.Lost,
	} {
		outcomes = append(outcomes, rollout.Outcome{Node: fmt.Sprintf("node-%d", i), Result: result})
		if reason, tripped := detector.Trips(outcomes, 1000); tripped {
			fmt.Println(reason)
		}
	}
	// Output:
	// 4 of the last 4 attempted nodes failed, as with a revision that fails on 10% of them and not on 1%; the last was "node-5"
}

// What the nodes that failed have in common, and those that succeeded have not.
func ExampleCauses() {
	var failed, succeeded []map[string]string
	for i := range 30 {
		node := map[string]string{"kernel": "5.10", "zone": []string{"a", "b", "c"}[i%3]}
		if i%7 == 0 {
			node["kernel"] = "6.1"
			failed = append(failed, node)
			continue
		}
		succeeded = append(succeeded, node)
	}
	for _, cause := range rollout.Causes(failed, succeeded) {
		fmt.Printf("%s (by chance: %.2g)\n", cause, cause.Chance)
	}
	// Output:
	// 5 of 5 failed nodes have kernel "6.1", and 0 of 25 that succeeded (by chance: 7e-06)
}
