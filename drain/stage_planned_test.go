// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// condition returns a condition of a Node as the server has it.
func (s *stageTest) condition(node, name string) corev1.NodeCondition {
	for _, c := range s.c.LiveNode(node).Status.Conditions {
		if string(c.Type) == name {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// KEP-5683: MaintenancePlanned is True before the drain begins, with the time of the window, and False from then on.
func TestMaintenanceIsPlannedUntilItsWindow(t *testing.T) {
	for _, outside := range []drain.WindowTreatment{"", drain.UndoCordon} {
		stage(t, draintest.Options{}, func(o *drain.Options) { o.NodeConditions = true }, func(s *stageTest) {
			s.web("web", 1, "n1")
			opens := time.Now().Add(2 * time.Hour)
			r := s.request("n1", func(r *drain.Request) {
				r.Policy.Windows, r.Policy.OutsideWindow = []drain.Window{{From: opens}}, outside
			})
			s.pass(r)
			s.pass(r)
			c := s.condition("n1", "MaintenancePlanned")
			when := opens.UTC().Format(time.RFC3339)
			if c.Status != corev1.ConditionTrue || c.Reason != "MaintenanceWindow" || !strings.Contains(c.Message, when) {
				t.Errorf("got %+v, want True for MaintenanceWindow with %s", c, when)
			}
			if n := len(s.c.Log(draintest.PatchNode)); n != 1 || s.c.LiveNode("n1").Spec.Unschedulable {
				t.Errorf("got %d writes and unschedulable %t, want one and no cordon", n, s.c.LiveNode("n1").Spec.Unschedulable)
			}
			s.phase(r, 3*time.Hour, drain.Drained)
			s.conditions("DrainInProgress=False Drained=True MaintenancePlanned=False MaintenanceInProgress=True")
			if c := s.condition("n1", "Drained"); c.Reason != "DrainCompleted" {
				t.Errorf("got %+v, want the reason DrainCompleted", c)
			}
			r.Mode = drain.Release
			s.phase(r, time.Minute, drain.Released)
			s.clean("n1")
		})
	}
}

// A plan that is withdrawn before its window leaves nothing on the node.
func TestWithdrawnPlanLeavesNoCondition(t *testing.T) {
	stage(t, draintest.Options{}, func(o *drain.Options) { o.NodeConditions = true }, func(s *stageTest) {
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.Windows = []drain.Window{{From: time.Now().Add(time.Hour)}}
		})
		s.pass(r)
		if c := s.condition("n1", "MaintenancePlanned"); c.Status != corev1.ConditionTrue {
			t.Errorf("got %+v, want it planned", c)
		}
		r.Mode = drain.Release
		s.phase(r, time.Minute, drain.Released)
		s.clean("n1")
		if c := s.condition("n1", "MaintenancePlanned"); c.Status != "" {
			t.Errorf("got %+v, want no condition", c)
		}
	})
}

// KEP-5683: a node that waits for its place in a set is planned, and says so until its turn.
func TestWaitingNodeOfASetIsPlanned(t *testing.T) {
	conditions := func(o *drain.Options) { o.NodeConditions = true }
	stage(t, draintest.Options{Termination: time.Minute}, conditions, func(s *stageTest) {
		s.web("web", 1, "n1")
		s.web("api", 1, "n2")
		done := make(chan drain.SetStatus, 1)
		go func() {
			set := drain.Set{Request: s.request(""), Groups: [][]string{{"n1", "n2"}}}
			st, err := s.d.Run(s.Context(), set, nil)
			if err != nil && s.Context().Err() == nil {
				s.Errorf("Run: got %v, want nil", err)
			}
			done <- st
		}()
		s.sleep(10 * time.Second)
		c := s.condition("n2", "MaintenancePlanned")
		waits := strings.Contains(c.Message, "place in a set")
		if c.Status != corev1.ConditionTrue || c.Reason != "AdminRequested" || !waits {
			t.Errorf("waiting: got %+v, want True for AdminRequested", c)
		}
		if c := s.condition("n1", "DrainInProgress"); c.Status != corev1.ConditionTrue || c.Reason != "AdminRequested" {
			t.Errorf("draining: got %+v, want True for AdminRequested", c)
		}
		s.sleep(5 * time.Minute)
		s.drained(done)
		if c := s.condition("n2", "MaintenancePlanned"); c.Status != corev1.ConditionFalse {
			t.Errorf("drained: got %+v, want False", c)
		}
	})
}
