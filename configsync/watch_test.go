// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// A gauge is a probe that fails while it is set.
type gauge struct{ sick atomic.Bool }

func (*gauge) Name() string { return "gauge" }

func (g *gauge) Check(context.Context) error {
	if g.sick.Load() {
		return errors.New("out of range")
	}
	return nil
}

// tuned is onNode for a node whose options were tuned.
func tuned(t *testing.T, tune func(*configsync.Options[string]), f func(n *node)) {
	t.Helper()
	eachDriver(t, func(t *testing.T, d driver) { startedNode(t, tune, d, f) })
}

func (n *node) alarms(want, rule string) {
	n.t.Helper()
	got := n.syncer.Status().Alarm
	if want == "" && got != "" || !strings.Contains(got, want) {
		n.t.Errorf("the alarm is %q, want %q: %s", got, want, rule)
	}
}

// C-35: a wanted probe is shown and decides nothing; a required one does.
func TestWantedProbesDecideNothing(t *testing.T) {
	var g gauge
	g.sick.Store(true)
	tuned(t, func(o *configsync.Options[string]) { o.Probes = append(o.Probes, configsync.Wanted(&g)) }, func(n *node) {
		o := n.push("v1", "good-1")
		n.wait(time.Minute)
		trial := n.syncer.Status().Trial
		if trial == nil || fmt.Sprint(trial.Failing) != "[gauge (not required): out of range]" {
			t.Errorf("the trial is %+v, want the wanted probe among what fails", trial)
		}
		n.wait(11 * time.Minute)
		if got := n.syncer.Status().LastKnownGood.UID; got != o.UID {
			t.Errorf("last known good is %q, want %q: a wanted probe holds nothing up", got, o.UID)
		}
	})
}

// C-32: what fails with a config and with all that is below it is not the config's fault: nothing is rejected, the
// wanted config comes back, and what it is not is said.
func TestAProbeThatFailsBelowTooBlamesNoConfig(t *testing.T) {
	var g gauge
	tuned(t, func(o *configsync.Options[string]) { o.Probes = append(o.Probes, &g) }, func(n *node) {
		v1 := n.promoted()
		v2 := n.push("v2", "good-2")
		n.wait(time.Minute)
		g.sick.Store(true)
		n.wait(3 * time.Minute)
		n.runs(v1, "a required probe failed for longer than the deadline")
		n.alarms("", "the probe has not failed for long enough after the rollback")
		failed := fmt.Sprintf(`failed to run current (UID: %s), required probe "gauge" failed for more than 2m0s`, v2.UID)
		n.condition(lkg.StatusFalse, failed,
			fmt.Sprintf("using last known good: (UID: %s)", v1.UID))
		n.wait(5 * time.Minute)
		n.runs(v2, "with what is below it the probe fails as well")
		common := `not the config: required probe "gauge" fails; also with (UID: ` + v1.UID + `); also with (init)`
		n.condition(lkg.StatusUnknown, common,
			fmt.Sprintf("using current (UID: %s)", v2.UID))
		g.sick.Store(false)
		n.wait(12 * time.Minute)
		n.alarms("", "it is over")
		st := n.syncer.Status()
		if len(st.Rejected) != 0 || st.LastKnownGood.UID != v2.UID || st.Condition.Status != lkg.StatusTrue {
			t.Errorf("status is %+v, want v2 promoted, and nothing rejected", st)
		}
	})
}

// sickWith is a probe that fails while a config of that UID is in use.
type sickWith struct {
	n   *node
	uid atomic.Value
}

func (*sickWith) Name() string { return "pods" }

func (s *sickWith) Check(context.Context) error {
	if uid, _ := s.uid.Load().(string); uid != "" && s.n.syncer.Status().Active.UID == uid {
		return errors.New("evicted")
	}
	return nil
}

// C-36, L-CS-36: a promoted config is left when its probes fail for too long, and rejected when they fail again after
// what is below it was healthy.
func TestAPromotedConfigIsLeft(t *testing.T) {
	var p sickWith
	tuned(t, func(o *configsync.Options[string]) { o.Probes = append(o.Probes, &p) }, func(n *node) {
		p.n = n
		p.uid.Store("")
		v1 := n.promoted()
		v2 := n.push("v2", "good-2")
		n.wait(12 * time.Minute)
		if got := n.syncer.Status().LastKnownGood.UID; got != v2.UID {
			t.Fatalf("last known good is %q, want %q", got, v2.UID)
		}
		p.uid.Store(v2.UID)
		n.wait(time.Minute)
		n.runs(v2, "a probe may fail for a moment")
		n.wait(2 * time.Minute)
		n.runs(v1, "it is left")
		if got := len(n.syncer.Status().Rejected); got != 0 {
			t.Errorf("%d configs are rejected before one below was seen to be healthy", got)
		}
		n.wait(8 * time.Minute)
		n.runs(v1, "it was tried again, and left")
		reason := fmt.Sprintf(`failed to run current (UID: %s), required probe "pods" failed for more than 2m0s`, v2.UID)
		n.condition(lkg.StatusFalse, reason,
			fmt.Sprintf("using last known good: (UID: %s); passed over (UID: %s)", v1.UID, v2.UID))
		if r := n.syncer.Status().Rejected; len(r) != 1 || r[0].Ref.UID != v2.UID || r[0].Reason != reason {
			t.Errorf("rejected are %+v, want v2", r)
		}
	})
}

// C-36: deaths of a promoted config count, up to the larger of its threshold and 3; planned ends don't.
func TestDeathsOfAPromotedConfigCount(t *testing.T) {
	onNode(t, func(n *node) {
		v1 := n.promoted()
		v2 := n.push("v2", "good-2")
		n.wait(12 * time.Minute)
		n.stop()
		n.start()
		for range lkgTolerated {
			n.wait(time.Minute)
			n.child.Kill()
		}
		n.wait(time.Second)
		n.runs(v2, "3 deaths are tolerated")
		n.child.Kill()
		n.wait(30 * time.Second)
		n.runs(v1, "a fourth is not")
		n.wait(5 * time.Minute)
		n.runs(v2, "it is tried again after v1 was healthy")
		n.wait(15 * time.Minute)
		if st := n.syncer.Status(); len(st.Rejected) != 0 || st.Condition.Status != lkg.StatusTrue {
			t.Errorf("status is %+v, want that nothing is rejected: it lives", st)
		}
	})
}

// lkgTolerated is how many deaths of a promoted config are tolerated at least.
const lkgTolerated = 3

// A config on trial that waits for a word from outside is promoted a trial after that, and left where the word
// doesn't come.
func TestAcknowledgement(t *testing.T) {
	var given atomic.Value // the UID that was acknowledged
	ack := &configsync.Ack{Given: func(_ context.Context, r lkg.Ref) (bool, error) { return given.Load() == r.UID, nil }}
	tuned(t, func(o *configsync.Options[string]) { o.Ack = ack }, func(n *node) {
		given.Store("")
		v1 := n.push("v1", "good-1")
		n.wait(14 * time.Minute)
		st := n.syncer.Status()
		if st.Trial == nil || st.Trial.Healthy != 0 || fmt.Sprint(st.Trial.Failing) != "[acknowledgement: not given yet]" {
			t.Errorf("the trial is %+v, want it to wait: no time is credited before the word", st.Trial)
		}
		given.Store(v1.UID)
		n.wait(9 * time.Minute)
		if got := n.syncer.Status().LastKnownGood.UID; got != "" {
			t.Errorf("last known good is %q before the trial is over", got)
		}
		n.wait(2 * time.Minute)
		if got := n.syncer.Status().LastKnownGood.UID; got != v1.UID {
			t.Errorf("last known good is %q, want %q a trial after the word", got, v1.UID)
		}

		v2 := n.push("v2", "good-2")
		n.wait(14 * time.Minute)
		n.runs(v2, "the deadline has not come")
		n.wait(2 * time.Minute)
		n.runs(v1, "nobody has acknowledged v2")
		n.condition(lkg.StatusFalse, fmt.Sprintf("rejected (UID: %s), cause: not acknowledged within 15m0s", v2.UID),
			fmt.Sprintf("using last known good: (UID: %s)", v1.UID))
		n.wait(time.Hour)
		n.runs(v1, "the last known good config needs no word")

		sick := n.push("v3", "sick-3")
		n.wait(3 * time.Minute)
		n.runs(v1, "who waits for a word is still probed")
		n.wait(5 * time.Minute)
		if got := n.syncer.Status().Rejected[0].Ref.UID; got != sick.UID {
			t.Errorf("rejected first is %q, want %q", got, sick.UID)
		}
	})
}

// What happens to the question is no answer.
func TestTroubleIsNoAcknowledgement(t *testing.T) {
	for name, given := range map[string]func(context.Context, lkg.Ref) (bool, error){
		"error": func(context.Context, lkg.Ref) (bool, error) { return true, errors.New("no way to the server") },
		"panic": func(context.Context, lkg.Ref) (bool, error) { panic("odd") },
		"slow": func(ctx context.Context, _ lkg.Ref) (bool, error) {
			<-ctx.Done()
			return false, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			tuned(t, func(o *configsync.Options[string]) { o.Ack = &configsync.Ack{Given: given, Deadline: time.Minute} }, func(n *node) {
				n.push("v1", "good-1")
				n.wait(3 * time.Minute)
				if st := n.syncer.Status(); len(st.Rejected) != 1 || st.Active.UID != "" {
					t.Errorf("status is %+v, want the config rejected", st)
				}
			})
		})
	}
	for _, a := range []*configsync.Ack{{}, {Given: func(context.Context, lkg.Ref) (bool, error) { return true, nil }, Deadline: -1}} {
		o := newNode(t).options()
		o.Source, o.Fetcher, o.Ack = nil, nil, a
		if _, err := configsync.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "Options.Ack") {
			t.Errorf("New with %+v = %v, want an error that names it", a, err)
		}
	}
}
