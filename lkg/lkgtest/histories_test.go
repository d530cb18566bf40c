// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

// histories is how many to play, and how many of them under other rules: what BELAY_LKG_HISTORIES says, as make
// lkg-proof does, or a sample.
func histories(t *testing.T) (all, others int) {
	t.Helper()
	text := os.Getenv("BELAY_LKG_HISTORIES")
	if text == "" {
		n := raceshare.Of(t, 300)
		return n, n / 3
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("BELAY_LKG_HISTORIES is %q, want how many histories to play", text)
	}
	return n, n
}

// playAll plays histories on all processors.
func playAll(t *testing.T, h lkgtest.Histories, r lkgtest.Rule) lkgtest.Figures {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	all := lkgtest.Figures{Rule: r.Name}
	parts := min(runtime.GOMAXPROCS(0), h.Count)
	for i := range parts {
		from, to := h.Count*i/parts, h.Count*(i+1)/parts
		wg.Go(func() {
			part := h
			part.Seed, part.Count = h.Seed+uint64(from), to-from
			f, err := part.Play(t.Context(), r)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			all.Add(f)
		})
	}
	wg.Wait()
	return all
}

// tellBroken prints how the first history went in which a rule was broken.
func tellBroken(t *testing.T, h lkgtest.Histories, r lkgtest.Rule, f lkgtest.Figures) {
	t.Helper()
	for i, b := range f.Broken {
		t.Errorf("%s: seed %d: %s", f.Rule, b.Seed, b.What)
		if i > 0 {
			continue
		}
		story, err := h.Replay(context.WithoutCancel(t.Context()), r, b.Seed)
		t.Logf("seed %d (%v):\n%s", b.Seed, err, story)
	}
}

// TestHistories: R-CS-20, R-CS-42, R-CS-46, R-CS-64, C-01, C-33. No planned restart and no reboot rejects a good
// config, and no config that crashes is promoted, however slowly it does; the rules that the kubelet's dynamic config
// was designed and released with fail in the same histories.
func TestHistories(t *testing.T) {
	all, others := histories(t)
	h := lkgtest.Histories{Seed: 1, Count: all}
	belay := playAll(t, h, lkgtest.Belay())
	if !belay.Right() {
		tellBroken(t, h, lkgtest.Belay(), belay)
	}
	if belay.Good+belay.Bad != h.Count || min(belay.Good, belay.Bad) < h.Count/3 {
		t.Errorf("%d good and %d bad configs in %d histories, want all of them, and many of each",
			belay.Good, belay.Bad, h.Count)
	}
	h.Count = others
	counted, clock := playAll(t, h, lkgtest.CountAndClock()), playAll(t, h, lkgtest.ClockAlone())
	if counted.GoodRejected == 0 || counted.BadPromoted == 0 {
		t.Errorf("counting every restart and promoting by the clock fails in no history: these prove nothing")
	}
	if clock.GoodRejected != 0 || clock.BadPromoted == 0 {
		t.Errorf("the clock alone rejected %d good configs and promoted %d bad ones, want 0 and many",
			clock.GoodRejected, clock.BadPromoted)
	}
	t.Logf("histories from seed %d:\n%s", h.Seed, lkgtest.Table(belay, counted, clock))
}

// TestHistoriesWithOutages: everything around and below the configs breaks as well, at any moment, and configs break
// after their promotion. The rule that blamed by count, and those of the kubelet's dynamic config, fail in the same
// histories.
func TestHistoriesWithOutages(t *testing.T) {
	all, others := histories(t)
	h := lkgtest.Histories{Seed: 1, Count: all, Outages: true}
	belay := playAll(t, h, lkgtest.Belay())
	if belay.GoodRejected+belay.GoodBlamed+belay.GoodUnproven+belay.BadPromoted > 0 {
		tellBroken(t, h, lkgtest.Belay(), belay)
	}
	h.Count = others
	counted := playAll(t, h, lkgtest.BlameByCount())
	if counted.GoodBlamed == 0 || counted.BadKept == 0 || counted.NeverBack == 0 {
		t.Errorf("blaming by count fails in too few ways: these histories prove nothing")
	}
	every, clock := playAll(t, h, lkgtest.CountAndClock()), playAll(t, h, lkgtest.ClockAlone())
	if every.GoodBlamed == 0 || every.BadPromoted == 0 {
		t.Errorf("counting every restart and promoting by the clock blamed %d good configs and promoted %d bad ones, "+
			"want many",
			every.GoodBlamed, every.BadPromoted)
	}
	if clock.BadKept == 0 || clock.NeverBack == 0 {
		t.Errorf("the clock alone kept %d bad configs, and never came back %d times, want many",
			clock.BadKept, clock.NeverBack)
	}
	t.Logf("histories with outages from seed %d:\n%s", h.Seed, lkgtest.Table(belay, counted, every, clock))
}

// blind is a tracker that does not see one kind of evidence.
type blind struct {
	lkgtest.Tracker
	noMarkers bool
	exit      func(lkg.Exit) lkg.Exit
	health    func(lkg.Health) lkg.Health
}

func (b blind) PlanRestart(ctx context.Context, kind lkg.Cause) error {
	if b.noMarkers {
		return nil
	}
	return b.Tracker.PlanRestart(ctx, kind)
}

func (b blind) Start(ctx context.Context, e lkg.Exit) error {
	if b.exit != nil {
		e = b.exit(e)
	}
	return b.Tracker.Start(ctx, e)
}

func (b blind) Healthy(ctx context.Context, h lkg.Health) (lkg.Progress, error) {
	if b.health != nil {
		h = b.health(h)
	}
	return b.Tracker.Healthy(ctx, h)
}

// TestHistoriesFindBrokenRules breaks one part of the rule at a time, and expects the figure that it breaks. The limits
// tolerate no end: what counts wrongly has then to be wrong twice, in the trial and when the config is tried once more.
func TestHistoriesFindBrokenRules(t *testing.T) {
	figures := map[string]func(lkgtest.Figures) int{
		"good rejected": func(f lkgtest.Figures) int { return f.GoodRejected },
		"good unproven": func(f lkgtest.Figures) int { return f.GoodUnproven },
		"bad promoted":  func(f lkgtest.Figures) int { return f.BadPromoted },
		"bad kept":      func(f lkgtest.Figures) int { return f.BadKept },
	}
	strict := []lkg.Limits{{Trial: 40 * time.Minute, MinHealthyRun: 2 * time.Minute}}
	step := raceshare.Step(t) // one goroutine plays
	for i, c := range []struct {
		name, breaks string
		boots        bool // whether boots are told apart
		count        int  // of histories
		blind        blind
	}{
		{"reboots count", "good rejected", false, 100, blind{}},
		{"planned restarts count", "good rejected", true, 100, blind{noMarkers: true}},
		{
			"stops on request count", "good rejected", true, 100,
			blind{exit: func(lkg.Exit) lkg.Exit { return lkg.Exit{Kind: lkg.ExitCrash} }},
		},
		{
			"crashes do not count", "bad kept", true, 20,
			blind{exit: func(lkg.Exit) lkg.Exit { return lkg.Exit{Kind: lkg.ExitPlanned} }},
		},
		{
			"probes are not asked", "bad promoted", true, 20,
			blind{health: func(h lkg.Health) lkg.Health { return lkg.Health{Elapsed: h.Elapsed} }},
		},
		{
			"healthy time counts three times", "bad promoted", true, 100,
			blind{health: func(h lkg.Health) lkg.Health { h.Elapsed *= 3; return h }},
		},
		{
			"no time passes", "good unproven", true, 20,
			blind{health: func(h lkg.Health) lkg.Health { return lkg.Health{Probes: h.Probes} }},
		},
	} {
		if i%step != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			rule := lkgtest.Rule{Name: c.name}
			rule.Open = func(ctx context.Context, s lkg.Store, o lkg.Options) (lkgtest.Tracker, error) {
				if !c.boots {
					o.BootID = ""
				}
				b := c.blind
				var err error
				b.Tracker, err = lkg.NewTracker(ctx, s, o)
				return b, err
			}
			f, err := lkgtest.Histories{Seed: 1, Count: c.count, Limits: strict}.Play(t.Context(), rule)
			if err != nil {
				t.Fatal(err)
			}
			if figures[c.breaks](f) == 0 || f.Right() || len(f.Broken) == 0 {
				t.Errorf("%s: want histories that show %s\n%s", c.name, c.breaks, lkgtest.Table(f))
			}
		})
	}
}

// TestHistoriesAreToldAgain: a seed alone tells a history, at any place in any run, under any rule.
func TestHistoriesAreToldAgain(t *testing.T) {
	h, r := lkgtest.Histories{Seed: 1, Count: 60}, lkgtest.CountAndClock()
	f, err := h.Play(t.Context(), r)
	if err != nil || len(f.Broken) == 0 {
		t.Fatalf("%v: %d broken, want some", err, len(f.Broken))
	}
	b := f.Broken[0]
	again, err := lkgtest.Histories{Seed: b.Seed, Count: 1}.Play(t.Context(), r)
	if err != nil || len(again.Broken) != 1 || again.Broken[0] != b {
		t.Errorf("played alone: %+v, %v; want %+v", again.Broken, err, b)
	}
	first, err1 := h.Replay(t.Context(), r, b.Seed)
	second, err2 := lkgtest.Histories{}.Replay(t.Context(), r, b.Seed)
	if err1 != nil || err2 != nil || first != second || len(first) < 100 {
		t.Errorf("told twice (%v, %v):\n%s\n%s", err1, err2, first, second)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Play(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("playing with an ended context: %v", err)
	}
}
