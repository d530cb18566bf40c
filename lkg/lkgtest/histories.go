// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/belayproject/belay/lkg"
)

// Histories are seeded lives of a node that adopts one config, which is good or not, among planned restarts, restarts by an
// administrator, reboots, kernel panics, watchdogs, lost power, a clock that jumps, and restarts that take longer each time. A
// config that is not good crashes within seconds or slowly, returns by itself, hangs, takes the machine down, or never becomes
// ready. Each history is told by its seed alone, so that one that breaks a rule can be played again, with [Histories.Replay].
//
// How often a thing happens is chosen to find broken rules, not measured: the figures compare rules and limits with each
// other, and are no forecast for a fleet. Disks do not fail here; that is what [Explore] is for.
//
// The zero value is usable, but for Count.
type Histories struct {
	// Seed of the first history; each further one has the next number.
	Seed uint64
	// Count of histories.
	Count int
	// Limits that a config may bring: each history draws one of them. Give those of your own fleet, as lkg.Bounds.Clamp leaves them.
	// Empty: a wide choice, with the defaults among them.
	Limits []lkg.Limits
	// Life is the longest that a bad config lives in one run. Zero: the least healthy run that its limits ask for, and where no
	// other restart falls into the trial, the whole of it.
	Life time.Duration
}

// Figures are what became of histories under one rule. A rule is right if none of GoodRejected, BadPromoted, GoodUnproven and
// BadKept is above zero.
type Figures struct {
	Rule string

	Good         int // histories of a good config, that is one which crashes no more often than is tolerated
	GoodRejected int // it was found bad
	GoodUnproven int // it was not promoted, though it ran for several trials in the end and nothing happened

	Bad         int // histories of a config that is not good
	BadPromoted int // it became the last known good config
	BadKept     int // it was used again after more crashes than are tolerated

	// Broken are the first histories in which a rule was broken.
	Broken []Broken
}

// Broken is a history in which a rule was broken.
type Broken struct {
	Seed uint64
	What string
}

// mostBroken bounds Figures.Broken.
const mostBroken = 10

// Play plays all histories under a rule. It returns early only with ctx, or if the rule returns an error, which then names
// the seed. Several goroutines may play parts of the seeds, and Add the figures.
func (h Histories) Play(ctx context.Context, r Rule) (Figures, error) {
	f := Figures{Rule: r.Name}
	for i := range h.Count {
		seed := h.Seed + uint64(i)
		life := newLife(h, r, seed)
		if err := life.play(ctx); err != nil {
			return f, fmt.Errorf("playing history %d under %q: %w", seed, r.Name, err)
		}
		f.count(life)
	}
	return f, nil
}

// Replay plays the history of one seed again and tells it, a line for each thing that happened.
func (h Histories) Replay(ctx context.Context, r Rule, seed uint64) (string, error) {
	var story strings.Builder
	life := newLife(h, r, seed)
	life.tell = func(format string, args ...any) {
		fmt.Fprintf(&story, "%-12s "+format+"\n", append([]any{life.now.Round(time.Millisecond)}, args...)...)
	}
	if err := life.play(ctx); err != nil {
		return story.String(), fmt.Errorf("playing history %d under %q: %w", seed, r.Name, err)
	}
	return story.String(), nil
}

// count adds the outcome of one history.
func (f *Figures) count(l *life) {
	var o Figures
	broke := ""
	if l.plot.good() {
		o.Good = 1
		switch l.outcome {
		case rejected:
			o.GoodRejected, broke = 1, "a good config was rejected"
		case undecided:
			o.GoodUnproven, broke = 1, "a good config was not promoted"
		}
	} else {
		o.Bad = 1
		if l.outcome == promoted {
			o.BadPromoted, broke = 1, "a bad config was promoted: it "+l.plot.String()
		}
		if l.kept > 0 {
			o.BadKept, broke = 1, fmt.Sprintf("a bad config was used again after %d crashes, tolerated: %d", l.kept, l.limits.CrashLoopThreshold)
		}
	}
	if broke != "" {
		o.Broken = []Broken{{l.seed, broke}}
	}
	f.Add(o)
}

// Add adds the figures of other histories under the same rule.
func (f *Figures) Add(o Figures) {
	f.Good += o.Good
	f.GoodRejected += o.GoodRejected
	f.GoodUnproven += o.GoodUnproven
	f.Bad += o.Bad
	f.BadPromoted += o.BadPromoted
	f.BadKept += o.BadKept
	f.Broken = append(f.Broken, o.Broken...)
	f.Broken = f.Broken[:min(len(f.Broken), mostBroken)]
}

// Right reports whether no rule was broken.
func (f Figures) Right() bool {
	return f.GoodRejected == 0 && f.GoodUnproven == 0 && f.BadPromoted == 0 && f.BadKept == 0
}

// Table prints figures side by side, a line for each rule.
func Table(figures ...Figures) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "rule\thistories\tgood rejected\tbad promoted\tgood unproven\tbad kept")
	for _, f := range figures {
		fmt.Fprintf(w, "%s\t%d\t%d of %d\t%d of %d\t%d\t%d\n",
			f.Rule, f.Good+f.Bad, f.GoodRejected, f.Good, f.BadPromoted, f.Bad, f.GoodUnproven, f.BadKept)
	}
	_ = w.Flush() // a Builder takes everything
	return out.String()
}
