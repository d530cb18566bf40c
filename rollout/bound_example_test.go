// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/rollout"
)

// How many nodes can a fatal revision break? One canary, then everything else at 5 % at a time.
func ExampleBound() {
	stages := []rollout.StageLoad{
		{Name: "canary", Nodes: 1, InFlight: 1},
		{Name: "rest", Nodes: 999, InFlight: 50},
	}
	for _, detectors := range [][]rollout.Detector{
		rollout.DefaultDetectors(),
		{rollout.Failures{At: intstr.FromString("5%"), Of: rollout.OfNodes}},
		{}, // off
	} {
		fmt.Println(rollout.Bound(stages, detectors))
	}
	reason, exceeded := rollout.Bound(stages, nil).Exceeds(intstr.FromString("2%"))
	fmt.Println(exceeded, reason)
	// Output:
	// a fatal revision can break 53 of 1000 nodes before it is stopped in stage "rest": detector "CUSUM of 1% against 10% failures, limit 9.2" trips at failure 4
	// a fatal revision can break 99 of 1000 nodes before it is stopped in stage "rest": detector "failures of 5% of the nodes" trips at failure 50
	// a fatal revision can break 999 of 1000 nodes: no detector trips by the end of stage "rest"
	// true a fatal revision can break 53 of 1000 nodes before it is stopped in stage "rest": detector "CUSUM of 1% against 10% failures, limit 9.2" trips at failure 4; the limit is 20 (2%)
}
