// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/belayproject/belay/lkg"
)

// Histories are seeded lives of a node that adopts one config, which is good or not, among planned restarts, restarts
// by an administrator, reboots, kernel panics, watchdogs, lost power, a clock that jumps, and restarts that take longer
// each time. A config that is not good crashes within seconds or slowly, returns by itself, hangs, takes the machine
// down, or never becomes ready. Each history is told by its seed alone, so that one that breaks a rule can be played
// again, with [Histories.Replay].
//
// How often a thing happens is chosen to find broken rules, not measured: the figures compare rules and limits with
// each other, and are no forecast for a fleet. Disks do not fail here; that is what [Explore] is for.
//
// The zero value is usable, but for Count.
type Histories struct {
	// Seed of the first history; each further one has the next number.
	Seed uint64
	// Count of histories.
	Count int
	// Limits that a config may bring: each history draws one of them. Give those of your own fleet, as lkg.Bounds.Clamp
	// leaves them. Empty: a wide choice, with the defaults among them.
	Limits []lkg.Limits
	// Life is the longest that a bad config lives in one run. Zero: the least healthy run that its limits ask for, and
	// where no other restart falls into the trial, the whole of it.
	Life time.Duration
	// Outages lets everything around and below the configs break as well, before, in and after the trial: the runtime, the
	// disk, the program, the network, the power, the agent. Configs break after their promotion, take the agent down, or
	// spoil the node for those below them. At most one outage of a history is one that no witness sees.
	Outages bool
}

// The promises that a history can find broken.
const (
	goodRejected = "good rejected"
	goodBlamed   = "good blamed"
	goodUnproven = "good unproven"
	badPromoted  = "bad promoted"
	badKept      = "bad kept"
	neverBack    = "never back"
)

// Figures are what became of histories under one rule. A rule is right if none of the figures that are not Good, Bad
// and Worst is above zero.
type Figures struct {
	Rule string

	// Good counts histories of a config that is good to the end, that is one which crashes no more often than is
	// tolerated.
	Good         int
	GoodRejected int // a good config was found bad
	GoodBlamed   int // it was found bad for an outage, or for a death of the agent
	GoodUnproven int // it was not promoted, though it ran for several trials in the end and nothing happened

	Bad         int // histories of a config that is not good, or breaks later
	BadPromoted int // it became the last known good config
	BadKept     int // it was used again after twice as many crashes, plus two, as are tolerated

	NeverBack int // no config lives in the end, or not the best that could, though nothing from outside happens any more
	Worst     int // the most crashes of one config that nothing from outside stood between

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

// Play plays all histories under a rule. It returns early only with ctx, or if the rule returns an error, which then
// names the seed. Several goroutines may play parts of the seeds, and Add the figures.
func (h Histories) Play(ctx context.Context, r Rule) (Figures, error) {
	f := Figures{Rule: r.Name}
	for i := range h.Count {
		seed := h.Seed + uint64(i)
		life := newLife(h, r, seed)
		broken, err := life.play(ctx)
		if err != nil {
			return f, fmt.Errorf("playing history %d under %q: %w", seed, r.Name, err)
		}
		f.Add(sumFigures(life, broken))
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
	broken, err := life.play(ctx)
	if err != nil {
		return story.String(), fmt.Errorf("playing history %d under %q: %w", seed, r.Name, err)
	}
	for _, what := range slices.Sorted(maps.Keys(broken)) {
		life.tell("%s: %s", what, broken[what])
	}
	return story.String(), nil
}

// sumFigures is the outcome of one history.
func sumFigures(l *life, broken map[string]string) Figures {
	f := Figures{Bad: 1, Worst: l.worst}
	if l.plot.isGood() {
		f.Good, f.Bad = 1, 0
	}
	var texts []string
	for _, what := range slices.Sorted(maps.Keys(broken)) {
		*f.brokenCount(what) = 1
		texts = append(texts, what+": "+broken[what])
	}
	if len(texts) > 0 {
		f.Broken = []Broken{{l.seed, strings.Join(texts, "; ")}}
	}
	return f
}

// brokenCount is the figure of a promise.
func (f *Figures) brokenCount(what string) *int {
	switch what {
	case goodRejected:
		return &f.GoodRejected
	case goodBlamed:
		return &f.GoodBlamed
	case goodUnproven:
		return &f.GoodUnproven
	case badPromoted:
		return &f.BadPromoted
	case badKept:
		return &f.BadKept
	default:
		return &f.NeverBack
	}
}

// Add adds the figures of other histories under the same rule.
func (f *Figures) Add(o Figures) {
	f.Good += o.Good
	f.Bad += o.Bad
	for _, what := range []string{goodRejected, goodBlamed, goodUnproven, badPromoted, badKept, neverBack} {
		*f.brokenCount(what) += *o.brokenCount(what)
	}
	f.Worst = max(f.Worst, o.Worst)
	f.Broken = append(f.Broken, o.Broken...)
	f.Broken = f.Broken[:min(len(f.Broken), mostBroken)]
}

// Right reports whether no rule was broken.
func (f Figures) Right() bool {
	return f.GoodRejected+f.GoodBlamed+f.GoodUnproven+f.BadPromoted+f.BadKept+f.NeverBack == 0
}

// Table prints figures side by side, a line for each rule.
func Table(figures ...Figures) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w,
		"rule\thistories\tgood rejected\tgood blamed\tbad promoted\tgood unproven\tbad kept\tnever back\tmost crashes")
	for _, f := range figures {
		fmt.Fprintf(w, "%s\t%d\t%d of %d\t%d of %d\t%d of %d\t%d\t%d\t%d\t%d\n", f.Rule, f.Good+f.Bad, f.GoodRejected, f.Good,
			f.GoodBlamed, f.Good+f.Bad, f.BadPromoted, f.Bad, f.GoodUnproven, f.BadKept, f.NeverBack, f.Worst)
	}
	_ = w.Flush() // a Builder takes everything
	return out.String()
}
