// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// slowly is a pod that was evicted at the start of the drain and has this long to end.
func slowly(grace time.Duration) podOption {
	return func(p *corev1.Pod) {
		deletedAt(grace)(p)
		p.DeletionGracePeriodSeconds = ptr.To(int64(grace / time.Second))
	}
}

// A step shortens the grace period of a pod that is ending, is announced before, and never makes it longer.
func TestStepShortensARunningGracePeriod(t *testing.T) {
	steps := func(grace *int64) []drain.Escalation {
		return []drain.Escalation{{After: 10 * time.Minute, Step: drain.StepDelete, GracePeriodSeconds: grace}}
	}
	c := newPlanCase(planPod("days", slowly(72*time.Hour)))
	c.policy.Escalation = steps(seconds(30))
	got := c.want(t, "days", drain.Wait, drain.Terminating, "2026-08-04T12:00:00Z")
	if got.Next != drain.StepDelete || !got.NextAt.Equal(planStart().Add(10*time.Minute)) {
		t.Errorf("next: got %q at %v, want Delete after 10 minutes", got.Next, got.NextAt)
	}
	c.wantNext(t, 10*time.Minute)
	c.after(10 * time.Minute)
	got = c.want(t, "days", drain.Evict, "", "its grace period of 259200 s is shortened to 30 s")
	if got.Step != drain.StepDelete || *got.GracePeriodSeconds != 30 {
		t.Errorf("got step %q with %v, want Delete with 30", got.Step, got.GracePeriodSeconds)
	}
	for name, policy := range map[string]drain.Policy{
		"the pod's own":  {Escalation: steps(nil)},
		"a longer one":   {Escalation: steps(seconds(72 * 3600))},
		"no step":        {GracePeriodSeconds: seconds(5)},
		"another window": {Escalation: steps(seconds(5)), Windows: []drain.Window{{Until: planStart()}}},
	} {
		c.policy = policy
		if p := c.pod(t, "days"); p.Action != drain.Wait || p.Step != "" {
			t.Errorf("%s: got %s by %q (%s), want Wait", name, p.Action, p.Step, p.Message)
		}
	}
	c.policy = drain.Policy{GracePeriodSeconds: seconds(5), Escalation: steps(nil)}
	if p := c.pod(t, "days"); p.Step != drain.StepDelete || *p.GracePeriodSeconds != 5 {
		t.Errorf("got %q with %v, want the policy's grace period", p.Step, p.GracePeriodSeconds)
	}
	c.Nodes[0].Pods[0] = planPod("days", slowly(5*time.Minute))
	c.Nodes[0].Shortened = map[types.UID]time.Time{"uid-days": planStart().Add(10 * time.Minute)}
	c.after(15 * time.Minute)
	c.want(t, "days", drain.Wait, drain.Terminating)
	c.after(16 * time.Minute)
	c.want(t, "days", drain.Block, "StuckTerminating")
	c = newPlanCase(planPod("late", slowly(5*time.Minute)))
	c.policy.Escalation = steps(seconds(30))
	c.after(time.Hour)
	c.want(t, "late", drain.Block, "StuckTerminating")
}

// The pod is deleted once, by its UID, is not counted as forced past a budget, and the drain ends.
func TestShortenedPodIsDeletedOnce(t *testing.T) {
	stage(t, draintest.Options{Termination: 72 * time.Hour}, nil, func(s *stageTest) {
		s.c.AddPod("default", "slow", "n1", func(p *corev1.Pod) {
			p.Spec.TerminationGracePeriodSeconds = seconds(72 * 3600)
		})
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.Unmanaged = drain.EvictPods
			r.Policy.Escalation = []drain.Escalation{{
				After: 10 * time.Minute, Step: drain.StepDelete, GracePeriodSeconds: seconds(1200),
			}}
		})
		began := time.Now()
		st := s.phase(r, time.Hour, drain.Drained)
		if took := time.Since(began); took < 30*time.Minute || took > 31*time.Minute {
			t.Errorf("got it drained after %s, want 20 minutes after the step", took)
		}
		if events := s.events.all(); slices.Contains(events, "Warning Draining") {
			t.Errorf("got the events %v, want none that calls the pod stuck", events)
		}
		deletions := s.c.Log(draintest.Delete)
		if len(deletions) != 1 || deletions[0].UID == "" || *deletions[0].GracePeriodSeconds != 1200 {
			t.Errorf("got the deletions %+v, want one by UID with 1200 s", deletions)
		}
		if len(st.Forced) != 0 || len(st.Evicted) != 1 || st.Outcome != drain.OutcomeDrained {
			t.Errorf("got forced %v, evicted %v, %s, want one eviction alone", st.Forced, st.Evicted, st.Outcome)
		}
		if !slices.Contains(s.events.all(), "Warning Shortened") {
			t.Errorf("got the events %v, want Shortened", s.events.all())
		}
	})
}
