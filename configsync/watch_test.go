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

// C-32: probes are asked again after a rollback. What fails there, too, is an alarm, and goes when it is over.
func TestProbesAfterARollback(t *testing.T) {
	var g gauge
	tuned(t, func(o *configsync.Options[string]) { o.Probes = append(o.Probes, &g) }, func(n *node) {
		v1 := n.promoted()
		bad := n.push("v2", "good-2")
		n.wait(time.Minute)
		g.sick.Store(true)
		n.wait(3 * time.Minute)
		n.runs(v1, "a required probe failed for longer than the deadline")
		n.alarms("", "the probe has not failed for long enough after the rollback")
		n.wait(3 * time.Minute)
		n.alarms(`went back to "kube-system/v1" (UID: `+v1.UID+`), and there required probe "gauge" fails for more than 2m0s`, "the rollback didn't help")
		g.sick.Store(false)
		n.wait(time.Minute)
		n.alarms("", "it is over")
		n.condition(lkg.StatusFalse, fmt.Sprintf(`failed to run current (UID: %s), required probe "gauge" failed for more than 2m0s`, bad.UID),
			fmt.Sprintf("using last known good: (UID: %s)", v1.UID))
	})
}

// C-36: after its promotion a config is watched for a while, and what goes wrong is an alarm, no rollback.
func TestWatchAfterPromotionOnlyAlarms(t *testing.T) {
	var g gauge
	tuned(t, func(o *configsync.Options[string]) { o.Probes, o.WatchAfter = append(o.Probes, &g), time.Hour }, func(n *node) {
		g.sick.Store(false)
		v1 := n.promoted()
		g.sick.Store(true)
		n.wait(time.Minute)
		n.alarms("", "a probe may fail for a moment")
		n.wait(3 * time.Minute)
		n.alarms(`"kube-system/v1" (UID: `+v1.UID+`) has passed its trial, and now required probe "gauge" fails for more than 2m0s`, "it is watched")
		n.wait(2 * time.Hour)
		n.alarms("has passed its trial", "an alarm stays until it is over")
		g.sick.Store(false)
		n.wait(time.Minute)
		n.alarms("", "it is over")
		g.sick.Store(true)
		n.wait(time.Hour)
		n.alarms("", "the watch has ended")
		n.runs(v1, "a watch rolls nothing back")
		if st := n.syncer.Status(); len(st.Rejected) != 0 || st.Condition.Status != lkg.StatusTrue {
			t.Errorf("status is %+v, want nothing rejected", st)
		}
	})
}

// C-36: a promoted config that crashes more often than a trial would let it is an alarm; planned ends are not.
func TestWatchCountsCrashes(t *testing.T) {
	tuned(t, func(o *configsync.Options[string]) { o.WatchAfter = time.Hour }, func(n *node) {
		v1 := n.promoted()
		n.stop()
		n.start()
		n.wait(time.Minute)
		n.alarms("", "a planned stop explains the start")
		n.child.Kill()
		n.wait(time.Minute)
		n.alarms("has passed its trial, and ended 1 times since", "its threshold is 0")
		n.runs(v1, "a watch rolls nothing back")
	})
	onNode(t, func(n *node) {
		n.promoted()
		n.child.Kill()
		n.wait(time.Minute)
		n.alarms("", "nobody asked for a watch")
	})
}

// A config on trial that waits for a word from outside is promoted a trial after that, and left where the word doesn't come.
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
