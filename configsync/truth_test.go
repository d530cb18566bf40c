// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/lkg"
)

// changes returns the conditions of all reports from the given one on, without repetitions.
func (n *node) changes(from int) []lkg.Condition {
	var out []lkg.Condition
	for _, r := range n.since(from) {
		if len(out) == 0 || out[len(out)-1] != r.Condition {
			out = append(out, r.Condition)
		}
	}
	return out
}

// L-CS-36, R-CS-75: a promoted config, or the local one, whose child is dead is not reported as True, before it is
// left, and neither between two crashes. The condition changes once, and again when the child is healthy.
func TestNoConditionIsTrueWithoutALivingChild(t *testing.T) {
	for _, kind := range []string{"promoted", "local"} {
		t.Run(kind, func(t *testing.T) {
			onNode(t, func(n *node) {
				if kind == "promoted" {
					n.promoted()
				}
				n.wait(time.Minute)
				was, before := n.rec.Last().Condition, len(n.rec.All())
				if was.Status != lkg.StatusTrue {
					t.Fatalf("the condition of a healthy node is %+v", was)
				}
				n.child.Delay = 20 * time.Second
				n.child.Kill()
				n.wait(15 * time.Second)
				want := lkg.Condition{Status: lkg.StatusUnknown, Reason: "not healthy: ended: signal: killed", Message: was.Message}
				if got := n.syncer.Status().Condition; got != want {
					t.Errorf("with a dead child the status has %+v, want %+v", got, want)
				}
				n.wait(10 * time.Minute)
				got := n.changes(before)
				for len(got) > 0 && got[0] == was {
					got = got[1:]
				}
				if len(got) != 2 || got[0] != want || got[1] != was {
					t.Errorf("the conditions after one crash are %+v, want %+v and then %+v again", got, want, was)
				}
			})
		})
	}
}

// R-CS-52: a crash loop of the local config, below which there is nothing, is one condition for as long as it lasts.
// What no check has found wrong with an init config is so reported when it runs.
func TestCrashLoopOfTheLocalConfigIsOneCondition(t *testing.T) {
	var broken atomic.Bool
	eachDriver(t, func(t *testing.T, d driver) {
		broken.Store(false)
		n := newNode(t)
		n.drive = d
		n.start()
		defer func() { n.stop() }()
		n.child.Conduct = func(string) configsynctest.Conduct {
			if broken.Load() {
				return configsynctest.Conduct{CrashAfter: 2 * time.Second}
			}
			return configsynctest.Conduct{}
		}
		n.wait(time.Minute)
		before := len(n.rec.All())
		broken.Store(true)
		n.child.Kill()
		n.wait(30 * time.Second) // until it counts as a crash loop
		loop := len(n.rec.All())
		n.wait(10 * time.Minute)
		for i, r := range n.since(before) {
			if r.Condition.Status == lkg.StatusTrue {
				t.Errorf("report %d in the crash loop is True: %+v", i, r.Condition)
			}
		}
		want := "failed to run current (init), crash loop"
		for _, c := range n.changes(loop) {
			if c.Reason != want {
				t.Errorf("a later condition is %+v, want %q for as long as it lasts", c, want)
			}
		}
		broken.Store(false)
		n.wait(2 * time.Hour) // what forgives crashes is a long healthy run
		if got := n.rec.Last().Condition; got.Status != lkg.StatusTrue {
			t.Errorf("after the crash loop the condition is %+v, want True", got)
		}
	})
}

// A child that lives and fails a required probe is not healthy.
func TestNoConditionIsTrueWithoutAHealthyChild(t *testing.T) {
	var g gauge
	tuned(t, func(o *configsync.Options[string]) { o.Probes = append(o.Probes, &g) }, func(n *node) {
		g.sick.Store(false)
		n.promoted()
		g.sick.Store(true)
		n.wait(20 * time.Second)
		got := n.rec.Last().Condition
		if got.Status != lkg.StatusUnknown || got.Reason != `not healthy: required probe "gauge" fails` {
			t.Errorf("while a required probe fails the condition is %+v", got)
		}
		g.sick.Store(false)
		n.wait(20 * time.Second)
		if got := n.rec.Last().Condition; got.Status != lkg.StatusTrue {
			t.Errorf("after it the condition is %+v, want True", got)
		}
	})
}

// tickingProbe fails with another number each time.
type tickingProbe struct{ asked atomic.Int64 }

func (p *tickingProbe) Name() string { return "heartbeat" }

func (p *tickingProbe) Check(context.Context) error {
	return fmt.Errorf("no heartbeat for %s, %d KiB left", time.Duration(p.asked.Add(1))*7*time.Second, p.asked.Load()*1000)
}

// L-CS-35: what changes in numbers alone is no news.
func TestNumbersOfAProbeAreNoNews(t *testing.T) {
	p := &tickingProbe{}
	tune := func(o *configsync.Options[string]) { o.Probes = append(o.Probes, configsync.Wanted(p)) }
	eachPromptDriver(t, func(t *testing.T, d driver) {
		startedNode(t, tune, d, func(n *node) {
			n.promoted()
			n.push("v2", "good-2")
			n.wait(30 * time.Second)
			before, asked := len(n.rec.All()), p.asked.Load()
			n.wait(50 * time.Second)
			if reports, looks := len(n.rec.All())-before, p.asked.Load()-asked; reports > 2 || looks < 4 {
				t.Errorf("%d reports for %d looks of a probe that says the same with other numbers", reports, looks)
			}
		})
	})
}
