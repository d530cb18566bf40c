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
