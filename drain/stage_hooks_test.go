// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// A stageResponder is told by the test what to answer.
type stageResponder struct {
	mu        sync.Mutex
	answer    func(n int) (drain.HookAnswer, error)
	asked     []drain.HookRequest
	at        []time.Time
	cancelled []drain.HookRequest
	broken    error // of Cancel
}

// Respond implements [drain.Responder].
func (r *stageResponder) Respond(_ context.Context, h drain.HookRequest) (drain.HookAnswer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked, r.at = append(r.asked, h), append(r.at, time.Now())
	return r.answer(len(r.asked))
}

// Cancel implements [drain.Responder].
func (r *stageResponder) Cancel(_ context.Context, h drain.HookRequest) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return r.broken
	}
	r.cancelled = append(r.cancelled, h)
	return nil
}

func (r *stageResponder) says(a drain.HookAnswer, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = func(int) (drain.HookAnswer, error) { return a, err }
}

// beats works and gives a sign of life each time.
func stageBeats(n int) (drain.HookAnswer, error) {
	return drain.HookAnswer{Progress: drain.HookWorking, Beat: strconv.Itoa(n)}, nil
}

// hooked has a pod "vm" on n1 that names responders, which the test gets, and a neighbour "app" that does not.
func hooked(t *testing.T, names string, test func(s *stageTest, r drain.Request, a, b *stageResponder)) {
	t.Helper()
	a, b := &stageResponder{answer: stageBeats}, &stageResponder{answer: stageBeats}
	change := func(o *drain.Options) { o.Responders = map[string]drain.Responder{"a": a, "b": b} }
	stage(t, draintest.Options{}, change, func(s *stageTest) {
		owner := s.c.AddWorkload(draintest.Workload{Name: "vm", Replicas: 2, Scale: true})
		own := draintest.OwnedBy(draintest.ReplicaSet, "vm", owner)
		s.c.AddPod("default", "vm", "n1", own, func(p *corev1.Pod) { p.Annotations = map[string]string{drain.HookAnnotation: names} })
		s.c.AddPod("default", "app", "n1", own)
		test(s, s.request("n1"), a, b)
	})
}

// vmEvicted is when the eviction of the pod was sent, zero for not yet.
func (s *stageTest) vmEvicted() (at time.Time) {
	for _, c := range s.evictions() {
		if c.Object == "default/vm" {
			return c.Started
		}
	}
	return at
}

// waitsForHook fails the test unless the pod waits and has not been evicted; its neighbour has.
func (s *stageTest) waitsForHook(st drain.Status) {
	s.Helper()
	if b := s.blocker(st, "vm"); b.Reason != "WaitingForHook" || !s.vmEvicted().IsZero() {
		s.Fatalf("got %s and eviction %s, want the pod to wait for its hook", stageLine(st), s.vmEvicted())
	}
	if calls := s.evictions(); len(calls) != 1 {
		s.Fatalf("evictions: got %v, want that of the neighbour", calls)
	}
}

// R-DR-15: a pod with a hook stays as long as its responder works, and goes when that is done.
func TestHookThatIsDone(t *testing.T) {
	hooked(t, "a", func(s *stageTest, r drain.Request, a, b *stageResponder) {
		uid := s.c.LivePod("default", "vm").UID
		end := time.Now().Add(5 * time.Hour)
		s.until(r, 6*time.Hour, "time to pass", func(st drain.Status) bool {
			s.waitsForHook(st)
			return time.Now().After(end)
		})
		want := drain.HookRequest{Pod: drain.PodRef{Namespace: "default", Name: "vm", UID: uid}, Node: "n1", Holder: "test", Maintenance: "m1", Responder: "a"}
		if a.asked[0] != want {
			t.Errorf("request: got %+v, want %+v", a.asked[0], want)
		}
		if n := len(a.asked); n < 5*360-1 || n > 5*360+2 {
			t.Errorf("responder: got asked %d times in 5 h, want each 10 s", n)
		}
		a.says(drain.HookAnswer{Progress: drain.HookDone}, nil)
		st := s.phase(r, time.Minute, drain.Drained)
		if len(st.Evicted) != 2 || len(b.asked) != 0 {
			t.Errorf("got %d evicted and %d questions to the second, want 2 and 0", len(st.Evicted), len(b.asked))
		}
	})
}

// R-DR-15: what a responder declines is asked of the next at once, and after the last the pod is evicted.
func TestHookThatIsDeclined(t *testing.T) {
	hooked(t, "a, b", func(s *stageTest, r drain.Request, a, b *stageResponder) {
		a.says(drain.HookAnswer{Progress: drain.HookDeclined}, nil)
		s.waitsForHook(s.pass(r))
		if len(a.asked) != 1 || len(b.asked) != 1 {
			t.Fatalf("asked in the first pass: got %d and %d, want 1 and 1", len(a.asked), len(b.asked))
		}
		b.says(drain.HookAnswer{Progress: drain.HookDeclined}, nil)
		s.phase(r, time.Minute, drain.Drained)
		if len(a.asked) != 1 {
			t.Errorf("questions after it declined: got %d, want none", len(a.asked)-1)
		}
	})
}

// R-DR-15: a responder that gives no sign of life within its time is given up: that it answers the same, or fails, is none.
func TestHookThatIsSilent(t *testing.T) {
	for name, silent := range map[string]struct {
		answer drain.HookAnswer
		err    error
	}{
		"same beat": {drain.HookAnswer{Progress: drain.HookWorking, Beat: "7"}, nil},
		"error":     {drain.HookAnswer{}, errors.New("gone")},
	} {
		t.Run(name, func(t *testing.T) {
			hooked(t, "a,b", func(s *stageTest, r drain.Request, a, b *stageResponder) {
				began := time.Now()
				a.says(silent.answer, silent.err)
				s.until(r, time.Hour, "the second one to be asked", func(st drain.Status) bool {
					s.waitsForHook(st)
					return len(b.asked) > 0
				})
				if took := time.Since(began); took != 20*time.Minute {
					t.Errorf("first responder: got given up after %s, want %s", took, 20*time.Minute)
				}
				b.says(silent.answer, silent.err)
				s.phase(r, time.Hour, drain.Drained)
				if took := s.vmEvicted().Sub(began); took < 2*20*time.Minute || took > 2*20*time.Minute+11*time.Second {
					t.Errorf("eviction: got it after %s, want it after twice %s", took, 20*time.Minute)
				}
			})
		})
	}
}

// R-DR-15: the pod's own deadline replaces the default.
func TestHookDeadlineOfThePod(t *testing.T) {
	hooked(t, "a", func(s *stageTest, r drain.Request, a, _ *stageResponder) {
		s.c.UpdatePod("default", "vm", func(p *corev1.Pod) { p.Annotations["drain.belay.dev/deadline"] = "45s" })
		began := time.Now()
		a.says(drain.HookAnswer{Progress: drain.HookAsked}, nil)
		s.phase(r, 10*time.Minute, drain.Drained)
		if took := s.vmEvicted().Sub(began); took != 45*time.Second {
			t.Errorf("eviction: got it after %s, want 45s", took)
		}
	})
}

// R-DR-15: a pod that names a responder which is not there is blocked, with the name: what it wants is not known to be an eviction.
func TestUnknownResponderBlocksThePod(t *testing.T) {
	hooked(t, "a,c", func(s *stageTest, r drain.Request, a, _ *stageResponder) {
		a.says(drain.HookAnswer{Progress: drain.HookDeclined}, nil)
		st := s.until(r, time.Hour, "a blocked drain", func(st drain.Status) bool { return st.Outcome == drain.OutcomeBlocked })
		b := s.blocker(st, "vm")
		if b.Action != drain.Block || b.Reason != drain.InvalidBehavior || b.Message != `there is no responder "c"` || b.Hook != "c" {
			t.Errorf("got %+v, want it blocked by the unknown responder", b)
		}
		s.sleep(time.Hour)
		s.pass(r)
		if !s.vmEvicted().IsZero() {
			t.Error("got the pod evicted, want it to stay")
		}
	})
}

// R-DR-15, R-DR-03: the dry run says the same, and counts the pod among those that stay.
func TestUnknownResponderIsInTheDryRun(t *testing.T) {
	hooked(t, "c,a", func(s *stageTest, r drain.Request, _, _ *stageResponder) {
		plan, err := s.d.Plan(s.Context(), r.Policy, "n1")
		if err != nil {
			t.Fatal(err)
		}
		n := plan.Nodes[0]
		i := slices.IndexFunc(n.Pods, func(p drain.PodPlan) bool { return p.Name == "vm" })
		if vm := n.Pods[i]; vm.Action != drain.Block || vm.Reason != drain.InvalidBehavior || vm.Hook != "c" {
			t.Errorf("got %+v, want it blocked by the unknown responder", vm)
		}
		if want := (drain.Counts{Remaining: 2, Evictable: 1, Blocked: 1}); n.Counts != want {
			t.Errorf("got the counts %+v, want %+v", n.Counts, want)
		}
		if b := s.blocker(s.pass(r), "vm"); b.Action != drain.Block || b.Hook != "c" {
			t.Errorf("the drain: got %+v, want what was planned", b)
		}
	})
}

// R-DR-15, R-DR-09: a release takes the requests back, also those of an earlier process, and one that cannot be taken back is tried again.
func TestReleaseTakesHookRequestsBack(t *testing.T) {
	for _, restart := range []bool{false, true} {
		hooked(t, "a,b", func(s *stageTest, r drain.Request, a, b *stageResponder) {
			s.waitsForHook(s.pass(r))
			if restart {
				s.restart()
			}
			a.broken = errors.New("not now")
			r.Mode = drain.Release
			if _, _, err := s.d.ReconcileRequest(s.Context(), r); !errors.Is(err, a.broken) {
				t.Errorf("release: got %v, want the responder's error", err)
			}
			if n := s.c.LiveNode("n1"); n.Spec.Unschedulable || n.Annotations[drain.MarkAnnotation] != "" {
				t.Error("node: got a cordon or a mark, want it given back whatever responders do")
			}
			a.broken = nil
			s.phase(r, time.Minute, drain.Released)
			if !slices.Contains(a.cancelled, a.asked[0]) || len(a.cancelled) != 1 {
				t.Errorf("restart %v: got %v taken back, want %v once", restart, a.cancelled, a.asked[0])
			}
			s.phase(r, time.Minute, drain.Released)
			if len(a.cancelled) != 1 || len(b.cancelled) > 1 {
				t.Errorf("second release: got %d and %d taken back, want no more", len(a.cancelled), len(b.cancelled))
			}
			if !s.vmEvicted().IsZero() {
				t.Error("got the pod evicted, want it to stay")
			}
		})
	}
}

// stageDeaf is a responder that hangs when a request is taken back.
type stageDeaf struct{ *stageResponder }

// Cancel implements [drain.Responder].
func (stageDeaf) Cancel(ctx context.Context, _ drain.HookRequest) error {
	<-ctx.Done()
	return ctx.Err()
}

// R-DR-15, R-DR-09: a responder that hangs keeps the node cordoned for no moment, and keeps nothing from the others, however little time there is. As long
// as it could not be asked for its time, the mark has its name, for the process after.
func TestReleaseOpensTheNodeWhateverRespondersDo(t *testing.T) {
	for _, within := range []time.Duration{time.Second, 10 * time.Second} {
		hooked(t, "a,b", func(s *stageTest, r drain.Request, a, b *stageResponder) {
			s.waitsForHook(s.pass(r))
			well := s.change
			s.change = func(o *drain.Options) {
				well(o)
				o.Responders = map[string]drain.Responder{"a": stageDeaf{a}, "b": b}
			}
			s.restart()
			r.Mode = drain.Release
			ctx, cancel := context.WithTimeout(s.Context(), within)
			defer cancel()
			if _, _, err := s.d.ReconcileRequest(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("release within %s: got %v, want that the responder did not answer", within, err)
			}
			n := s.c.LiveNode("n1")
			if mark := n.Annotations[drain.MarkAnnotation]; n.Spec.Unschedulable || (mark != "") != (within < 5*time.Second) || len(b.cancelled) != 1 {
				t.Errorf("release within %s: cordoned %t, mark %q, %d requests to the other one taken back", within, n.Spec.Unschedulable, mark, len(b.cancelled))
			}
			if within < 5*time.Second {
				s.change = well
				s.restart()
				s.phase(r, time.Minute, drain.Released)
				if !slices.Contains(a.cancelled, a.asked[0]) {
					t.Errorf("the next process: got %v taken back, want %v", a.cancelled, a.asked[0])
				}
			}
			s.clean("n1")
		})
	}
}

// R-DR-15: what a killed process has asked because of its policy's rules is taken back by a release that knows no policy.
func TestReleaseTakesBackWhatRulesAsked(t *testing.T) {
	hooked(t, "", func(s *stageTest, r drain.Request, _, b *stageResponder) {
		r.Policy.Rules = []drain.Rule{{Behavior: drain.BehaviorHook, Hooks: []string{"b", "a"}}}
		s.pass(r)
		s.restart()
		s.phase(drain.Request{Node: r.Node, Holder: r.Holder, Maintenance: r.Maintenance, Mode: drain.Release}, time.Minute, drain.Released)
		if len(b.asked) == 0 {
			t.Fatal("the first responder of the rule was not asked")
		}
		for _, asked := range b.asked {
			if !slices.Contains(b.cancelled, asked) {
				t.Errorf("responder b: got %v taken back, want also %v", b.cancelled, asked)
			}
		}
	})
}

// R-DR-15: a responder that hangs does not hold up the neighbours for longer than a pass.
func TestResponderThatHangs(t *testing.T) {
	hooked(t, "a", func(s *stageTest, r drain.Request, _, _ *stageResponder) {
		began := time.Now()
		s.change = func(o *drain.Options) { o.Responders = map[string]drain.Responder{"a": stageHangs{}} }
		s.restart()
		s.pass(r)
		if took := time.Since(began); took > 20*time.Second || len(s.evictions()) != 1 {
			t.Errorf("pass: got %s and %d evictions, want 20s at most and the neighbour's", took, len(s.evictions()))
		}
	})
}

// stageHangs is a Responder that does not keep its promise to return at once.
type stageHangs struct{}

// Respond implements [drain.Responder].
func (stageHangs) Respond(ctx context.Context, _ drain.HookRequest) (drain.HookAnswer, error) {
	<-ctx.Done()
	return drain.HookAnswer{}, ctx.Err()
}

// Cancel implements [drain.Responder].
func (stageHangs) Cancel(context.Context, drain.HookRequest) error { return nil }

// R-DR-15: a responder is given up at its deadline, also where a pass for another reason has come just before it.
func TestPassJustBeforeADeadline(t *testing.T) {
	hooked(t, "a,b", func(s *stageTest, r drain.Request, a, b *stageResponder) {
		a.says(drain.HookAnswer{Progress: drain.HookWorking, Beat: "7"}, nil)
		began := time.Now()
		before := began.Add(20*time.Minute - 500*time.Microsecond)
		for len(b.asked) == 0 && time.Since(began) < time.Hour {
			_, after, err := s.d.ReconcileRequest(s.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(before); left > 0 {
				after = min(after, left)
			}
			s.sleep(after)
		}
		if len(b.at) == 0 || b.at[0].Sub(began) != 20*time.Minute {
			t.Errorf("second responder: asked at %s, want it at %s", b.at, began.Add(20*time.Minute))
		}
	})
}
