// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// R-CS-88: however a node comes to reject a config, before it is adopted or on its trial, its shadow says that the attempt has failed and that it runs
// what it ran before; so a detector that allows one rejection stops the rollout at the second node, and the default one at its fourth.
func TestRejectedConfigsAreToldToARollout(t *testing.T) {
	for word, reason := range map[string]string{
		"crash": "FellBack", "sick": "OnTrial", "wrong": "ConfigBad", "unproven": "ConfigBad",
	} {
		t.Run(word, func(t *testing.T) {
			var told []rollout.Outcome
			for i := range 4 {
				synctest.Test(t, func(t *testing.T) {
					s := newSteered(t)
					good, bad := s.config("one", "good"), s.config("two", word)
					s.roll(good, false)
					s.wantPhase(protocol.PhaseDone)
					s.roll(bad, false)
					s.wants(protocol.PhaseFailedClean, reason, good)
					told = append(told, rollout.Outcome{Node: fmt.Sprintf("node-%d", i), Result: rollout.Result(s.status().Report.Phase)})
				})
			}
			stops := func(d rollout.Detector, at int) {
				t.Helper()
				for n := range len(told) + 1 {
					if reason, tripped := d.Trips(told[:n], 100); tripped != (n >= at) {
						t.Errorf("%T after %d rejections: stopped is %t (%s), want that at %d", d, n, tripped, reason, at)
					}
				}
			}
			stops(rollout.Failures{At: intstr.FromInt32(2)}, 2)
			stops(rollout.DefaultDetectors()[0], 4)
		})
	}
}
