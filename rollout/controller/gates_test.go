// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
)

type gate struct {
	answer  rollout.Answer
	message string
}

func (g *gate) Verdict(context.Context) rollout.Verdict {
	return rollout.Verdict{From: "whatever", Answer: g.answer, Message: g.message}
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

// The event of a gate that says much has a note that the API server takes.
func TestEventOfALongMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 2)
		r := &recorded{}
		w.o.Recorder = r
		w.o.StageGates = map[string]controller.Gate{
			"smoke": &gate{answer: rollout.Deny, message: strings.Repeat("é", 1000)},
		}
		w.start()
		w.policy.Stages = []rollout.Stage{{Name: "canary", Size: size(1), Gates: []string{"smoke"}}, {Name: "all"}}
		w.want()
		w.c.EditRollout(uid, func(o *controller.Rollout) { o.Object = &corev1.ConfigMap{} })
		w.untilPhase(rollout.AtGate)
		const edge = "Normal AtGate "
		at := slices.IndexFunc(r.events, func(e string) bool { return strings.HasPrefix(e, edge) })
		if at < 0 {
			t.Fatalf("events %q, want one of the gate", r.events)
		}
		if note := r.events[at][len(edge):]; len(note) < 1000 || len(note) > 1024 {
			t.Errorf("the note has %d bytes: %q; want it cut to 1,024", len(note), note)
		}
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
