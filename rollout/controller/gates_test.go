// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
)

type gate struct{ answer rollout.Answer }

func (g *gate) Verdict(context.Context) rollout.Verdict {
	return rollout.Verdict{From: "whatever", Answer: g.answer}
}

// A gate of stages holds up the stage that names it, by the name that it has in the options (R-RO-26).
func TestStageGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, 4)
		smoke := &gate{answer: rollout.Deny}
		w.o.StageGates = map[string]controller.Gate{"other": &gate{answer: rollout.Deny}, "smoke": smoke}
		w.start()
		w.policy.Stages = []rollout.Stage{{Name: "canary", Size: size(1), Gates: []string{"smoke"}}, {Name: "all"}}
		w.want()
		w.untilPhase(rollout.AtGate)
		w.steps(10)
		w.untilPhase(rollout.AtGate)
		smoke.answer = rollout.Allow
		w.untilPhase(rollout.Completed)
		w.sound()
		w.once(4, "v2")
	})
}

// A gate that is nil is named.
func TestStageGateThatIsNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		w.o.StageGates = map[string]controller.Gate{"smoke": nil}
		if _, err := controller.New(w.o); err == nil || !strings.Contains(err.Error(), `Options.StageGates["smoke"] is nil`) {
			t.Errorf("got %v, want the name of the gate", err)
		}
	})
}
