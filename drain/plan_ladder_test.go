// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

func seconds(n int64) *int64 { return &n }

// wantStep checks how a pod is made to leave.
func wantStep(t *testing.T, p drain.PodPlan, step drain.Step, grace *int64) {
	t.Helper()
	same := (p.GracePeriodSeconds == nil) == (grace == nil) && (grace == nil || *p.GracePeriodSeconds == *grace)
	if p.Action != drain.Evict || p.Step != step || !same {
		t.Errorf("pod %q: got %s %q by step %q with grace %v, want step %q with %v", p.Name, p.Action, p.Reason, p.Step, p.GracePeriodSeconds, step, grace)
	}
}

func wantNextStep(t *testing.T, p drain.PodPlan, step drain.Step, after time.Duration) {
	t.Helper()
	if want := planStart().Add(after); p.Next != step || step != "" && !p.NextAt.Equal(want) || step == "" && !p.NextAt.IsZero() {
		t.Errorf("pod %q: got next step %q at %v, want %q at %v", p.Name, p.Next, p.NextAt, step, want)
	}
}

// Each step of the ladder is announced before its time, and taken from then on, for whatever keeps a pod.
func TestLadderIsAnnouncedAndThenTaken(t *testing.T) {
	for _, rc := range append(blockedCases(), waitingCases()...) {
		c := newPlanCase(planPod("p", rc.pod...))
		if rc.set != nil {
			rc.set(c)
		}
		switch rc.reason {
		case "FinalizersRemain", "NodeUnreachable", "StuckTerminating", drain.Terminating,
			"WaitingForCompletion", "WaitingForHook", drain.WaitingForOrder, drain.WindowClosed:
			continue // nothing to delete, or a condition of their own
		}
		t.Run(rc.name, func(t *testing.T) {
			c.policy.Escalation = []drain.Escalation{{After: time.Hour, Step: drain.StepDelete}, {After: 2 * time.Hour, Step: drain.StepDelete, GracePeriodSeconds: seconds(5)}}
			c.after(time.Hour - 1)
			wantNextStep(t, c.want(t, "p", rc.action, rc.reason), drain.StepDelete, time.Hour)
			c.wantNext(t, time.Hour)
			c.after(time.Hour)
			if p := c.pod(t, "p"); p.Step != drain.StepEvict {
				t.Errorf("got %s by step %q, want an eviction before the deletion", p.Action, p.Step)
			}
			c.refusedAt(time.Hour - 9*time.Second)
			p := c.pod(t, "p")
			if p.Step == drain.StepDelete {
				t.Error("it is deleted 9 s after its eviction was refused, want 10 s")
			}
			wantNextStep(t, p, drain.StepDelete, time.Hour+time.Second)
			c.wantNext(t, time.Hour+time.Second)
			c.refusedAt(time.Hour - 10*time.Second)
			p = c.pod(t, "p")
			wantStep(t, p, drain.StepDelete, nil)
			wantNextStep(t, p, drain.StepDelete, 2*time.Hour)
			c.after(3 * time.Hour)
			p = c.pod(t, "p")
			wantStep(t, p, drain.StepDelete, seconds(5))
			wantNextStep(t, p, "", 0)
		})
	}
}

// Without escalation, and before a drain has begun, eviction is all that is ever done.
func TestNothingEscalatesByItself(t *testing.T) {
	c := newPlanCase(planPod("p", unowned), planPod("q"))
	c.after(1000 * time.Hour)
	wantNextStep(t, c.want(t, "p", drain.Block, drain.Unmanaged), "", 0)
	c.policy.Escalation = []drain.Escalation{{After: time.Hour, Step: drain.StepDelete}}
	c.Nodes[0].Started = time.Time{}
	wantNextStep(t, c.want(t, "p", drain.Block, drain.Unmanaged), "", 0)
	wantStep(t, c.pod(t, "q"), drain.StepEvict, nil)
}

// No step is taken for a pod that is skipped, may finish, or has a responder.
func TestLadderPassesBySomePods(t *testing.T) {
	c := newPlanCase(planPod("skip", labeled("drain.belay.dev/behavior", "Skip")), planPod("finish", labeled("drain.belay.dev/behavior", "WaitCompleted")),
		planPod("hook", annotated(drain.HookAnnotation, "vm")), planPod("ending", deletedAt(0)))
	c.policy.Escalation = []drain.Escalation{{After: time.Minute, Step: drain.StepDelete}, {After: time.Hour, Step: drain.StepDelete}}
	c.want(t, "skip", drain.Skip, "SkippedByRule")
	c.want(t, "ending", drain.Block, "StuckTerminating")
	for _, name := range []string{"finish", "hook", "ending"} {
		wantNextStep(t, c.pod(t, name), "", 0)
	}
	if got := leaving(c.plan()); got != nil {
		t.Errorf("got %q leaving, want nobody", got)
	}
	c.wantNext(t, -1)
}

// The ladder keeps the order: a blocked pod of a later tier is deleted after the earlier tiers have gone.
func TestLadderKeepsTheOrder(t *testing.T) {
	c := newPlanCase(planPod("a", ofApp("a"), unowned), planPod("b", ofApp("b"), unowned))
	c.policy = drain.Policy{Rules: []drain.Rule{tierOf("b", 1)}, Escalation: []drain.Escalation{{After: time.Hour, Step: drain.StepDelete}}}
	c.want(t, "b", drain.Block, drain.Unmanaged)
	c.after(time.Hour)
	c.refusedAt(0)
	wantStep(t, c.pod(t, "a"), drain.StepDelete, nil)
	c.want(t, "b", drain.Wait, drain.WaitingForOrder)
}

// An answer that a deletion can get too holds the pod back on every step, so that a refused deletion is not repeated at once.
// One about budgets can not be to a deletion.
func TestAnswersHoldBackOnTheLadder(t *testing.T) {
	for _, tc := range []struct {
		verdict drain.Verdict
		held    bool
	}{
		{"BudgetExhausted", false}, {"BudgetStale", false}, {"BudgetContended", false}, {"MultipleBudgets", false},
		{"AdmissionDenied", true}, {"Forbidden", true}, {"Rejected", true}, {"Unknown", true},
		{"Overloaded", true}, {"NamespaceTerminating", true}, {"Gone", true},
	} {
		c := newPlanCase(planPod("p", unowned))
		c.policy.Escalation = []drain.Escalation{{After: time.Hour, Step: drain.StepDelete}}
		c.Nodes[0].Attempts = map[types.UID]drain.Answer{"uid-p": {Verdict: tc.verdict}}
		c.refusedAt(0)
		c.after(time.Hour)
		if got := c.pod(t, "p").Action != drain.Evict; got != tc.held {
			t.Errorf("last answer %s: got held %t, want %t", tc.verdict, got, tc.held)
		}
		c.Nodes[0].Attempts = nil
		wantStep(t, c.pod(t, "p"), drain.StepDelete, nil)
	}
}

// The out-of-service step needs the proof that the machine is off; with it everything goes that is not skipped.
func TestOutOfServiceNeedsProof(t *testing.T) {
	c := newPlanCase(planPod("ending", deletedAt(0)), planPod("finish", labeled("drain.belay.dev/behavior", "WaitCompleted")), planPod("ds", ownedBy("DaemonSet", "ds")))
	c.policy.Escalation = []drain.Escalation{{After: time.Minute, Step: drain.StepDelete}, {After: time.Hour, Step: drain.StepOutOfService}}
	c.after(2 * time.Hour)
	wantNextStep(t, c.want(t, "ending", drain.Block, "StuckTerminating"), "", 0)
	c.Nodes[0].PoweredOff = true
	c.after(time.Hour - 1)
	wantNextStep(t, c.want(t, "ending", drain.Block, "StuckTerminating"), drain.StepOutOfService, time.Hour)
	wantNextStep(t, c.want(t, "finish", drain.Wait, "WaitingForCompletion"), drain.StepOutOfService, time.Hour)
	c.wantNext(t, time.Hour)
	c.after(time.Hour)
	wantStep(t, c.pod(t, "ending"), drain.StepOutOfService, nil)
	wantStep(t, c.pod(t, "finish"), drain.StepOutOfService, nil)
	c.want(t, "ds", drain.Skip, "DaemonSetPod")
}

// The grace period is the step's, else the policy's, else the pod's own, and never 0.
func TestGracePeriodIsNeverZero(t *testing.T) {
	for _, tc := range []struct {
		step, policy, own, want *int64
	}{
		{nil, nil, nil, nil}, {nil, nil, seconds(30), nil}, {nil, nil, seconds(0), seconds(1)}, {nil, seconds(9), seconds(0), seconds(9)},
		{nil, seconds(0), nil, seconds(1)}, {seconds(0), nil, nil, seconds(1)}, {seconds(2), seconds(9), nil, seconds(2)}, {seconds(-5), nil, nil, seconds(1)},
	} {
		c := newPlanCase(planPod("p"))
		c.Nodes[0].Pods[0].Spec.TerminationGracePeriodSeconds = tc.own
		c.policy.GracePeriodSeconds = tc.policy
		step := drain.StepEvict
		if tc.step != nil {
			step = drain.StepDelete
			c.policy.Escalation = []drain.Escalation{{After: 1, Step: step, GracePeriodSeconds: tc.step}}
			c.refusedAt(0)
		}
		wantStep(t, c.pod(t, "p"), step, tc.want)
	}
}

// Outside its windows no eviction starts, deletions and hooks included; what is under way goes on (R-DR-12).
func TestNothingStartsOutsideTheWindows(t *testing.T) {
	c := newPlanCase(planPod("a"), planPod("b", unowned), planPod("ending", deletedAt(time.Hour)), planPod("hook", annotated(drain.HookAnnotation, "vm")),
		planPod("asked", annotated(drain.HookAnnotation, "vm")))
	c.Nodes[0].Hooks = map[types.UID]drain.HookState{"uid-asked": {Responder: "vm", Progress: drain.HookWorking, LastBeat: planStart().Add(8 * time.Hour)}}
	at := func(d time.Duration) time.Time { return planStart().Add(d) }
	c.policy.Windows = []drain.Window{
		{From: at(6 * time.Hour), Until: at(7 * time.Hour)}, {From: at(2 * time.Hour), Until: at(4 * time.Hour)}, {From: at(3 * time.Hour), Until: at(5 * time.Hour)},
	}
	p := c.want(t, "a", drain.Wait, drain.WindowClosed, "opens at 2026-08-01T14:00:00Z")
	wantNextStep(t, p, drain.StepEvict, 2*time.Hour)
	wantNextStep(t, c.want(t, "hook", drain.Wait, drain.WindowClosed), "", 0)
	c.want(t, "b", drain.Block, drain.Unmanaged)
	c.want(t, "ending", drain.Wait, drain.Terminating)
	c.want(t, "asked", drain.Hook, "WaitingForHook")
	c.Nodes[0].Pods[2].DeletionTimestamp.Time = at(24 * time.Hour)
	c.wantNext(t, 2*time.Hour)

	c.after(2 * time.Hour)
	c.want(t, "a", drain.Evict, "")
	c.want(t, "hook", drain.Hook, "WaitingForHook")
	c.wantNext(t, 5*time.Hour) // the end of two windows that overlap
	c.after(5 * time.Hour)
	c.want(t, "a", drain.Wait, drain.WindowClosed)
	c.wantNext(t, 6*time.Hour)
	c.after(7 * time.Hour)
	c.want(t, "a", drain.Wait, drain.WindowClosed, "none follows")
}

// A step that falls outside the windows is announced for when one opens (R-DR-12).
func TestLadderWaitsForTheWindow(t *testing.T) {
	c := newPlanCase(planPod("p", unowned))
	c.policy.Escalation = []drain.Escalation{{After: time.Hour, Step: drain.StepDelete}}
	c.policy.Windows = []drain.Window{{Until: planStart().Add(30 * time.Minute)}, {From: planStart().Add(8 * time.Hour)}}
	wantNextStep(t, c.want(t, "p", drain.Block, drain.Unmanaged), drain.StepDelete, 8*time.Hour)
	c.after(time.Hour)
	wantNextStep(t, c.want(t, "p", drain.Wait, drain.WindowClosed), drain.StepEvict, 8*time.Hour)
	c.refusedAt(0)
	wantNextStep(t, c.want(t, "p", drain.Wait, drain.WindowClosed), drain.StepDelete, 8*time.Hour)
	c.Nodes[0].Asked = nil
	c.after(8 * time.Hour)
	wantStep(t, c.pod(t, "p"), drain.StepEvict, nil)
	c.refusedAt(0)
	wantStep(t, c.pod(t, "p"), drain.StepDelete, nil)
	c.policy.Windows = c.policy.Windows[:1]
	wantNextStep(t, c.want(t, "p", drain.Wait, drain.WindowClosed), "", 0)
	c.wantNext(t, -1)
}

// A pod with a hook is evicted when the responder is done, has declined, or has fallen silent, each after its turn (R-DR-15).
func TestPodWithHookWaitsForItsResponders(t *testing.T) {
	c := newPlanCase(planPod("p", annotated(drain.HookAnnotation, "first, second"), annotated("drain.belay.dev/deadline", "5m")))
	says := func(responder string, progress drain.HookProgress, beat time.Duration) {
		c.Nodes[0].Hooks = map[types.UID]drain.HookState{"uid-p": {Responder: responder, Progress: progress, LastBeat: planStart().Add(beat), Message: "copying"}}
	}
	asks := func(responder string) {
		t.Helper()
		if p := c.want(t, "p", drain.Hook, "WaitingForHook", responder); p.Hook != responder || p.HookSilence != 5*time.Minute {
			t.Errorf("got responder %q, silent for %s at most, want %q, 5m", p.Hook, p.HookSilence, responder)
		}
	}
	asks("first")
	c.wantNext(t, -1)
	says("first", drain.HookWorking, time.Minute)
	asks("first")
	c.want(t, "p", drain.Hook, "WaitingForHook", "at it: copying")
	c.wantNext(t, 6*time.Minute)
	c.after(6*time.Minute - 1)
	asks("first")
	c.after(6 * time.Minute) // silent
	asks("second")
	says("first", drain.HookDeclined, 6*time.Minute)
	asks("second")
	says("second", drain.HookAsked, 6*time.Minute)
	asks("second")
	c.after(11 * time.Minute) // the last one is silent
	c.want(t, "p", drain.Evict, "")
	says("second", drain.HookDeclined, 11*time.Minute)
	c.want(t, "p", drain.Evict, "")
	says("first", drain.HookDone, 11*time.Minute)
	c.want(t, "p", drain.Evict, "")
	says("unknown", drain.HookWorking, 11*time.Minute)
	asks("first")
}

// What a responder has evacuated needs no protection; where it has declined the policy still protects (R-DR-15).
func TestEvacuatedPodMayLoseWhatIsLeft(t *testing.T) {
	c := newPlanCase(planPod("p", annotated(drain.HookAnnotation, "vm"), withEmptyDir("disk", "")))
	c.want(t, "p", drain.Hook, "WaitingForHook")
	c.Nodes[0].Hooks = map[types.UID]drain.HookState{"uid-p": {Responder: "vm", Progress: drain.HookDone}}
	c.want(t, "p", drain.Evict, "")
	c.Nodes[0].Hooks = map[types.UID]drain.HookState{"uid-p": {Responder: "vm", Progress: drain.HookDeclined}}
	c.want(t, "p", drain.Block, drain.LocalStorage)
}

// The silence of a hook has a default, and a responder is asked when its pod's tier has its turn and not before.
func TestHookHasADefaultSilenceAndKeepsTheOrder(t *testing.T) {
	c := newPlanCase(planPod("a", ofApp("a"), unowned), planPod("b", ofApp("b")))
	c.policy.Rules = []drain.Rule{{Tier: 1, Behavior: drain.BehaviorHook, Hooks: []string{"vm", "vm"}, Selector: tierOf("b", 0).Selector}}
	if p := c.want(t, "b", drain.Wait, drain.WaitingForOrder); p.Hook != "" {
		t.Errorf("got responder %q to be asked, want none before its turn", p.Hook)
	}
	c.Nodes[0].Pods = c.Nodes[0].Pods[1:]
	if p := c.want(t, "b", drain.Hook, "WaitingForHook"); p.HookSilence != 20*time.Minute {
		t.Errorf("got %s of silence, want %s", p.HookSilence, 20*time.Minute)
	}
	c.Nodes[0].Hooks = map[types.UID]drain.HookState{"uid-b": {Responder: "vm", Progress: drain.HookDeclined}}
	c.want(t, "b", drain.Evict, "")
}
