// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Options say which mutants [Explore] makes and which tests run on them.
type Options struct {
	// Dir is the directory of the package. It may lie in any module.
	Dir string
	// Tests is the directory of the package whose tests run; empty for Dir.
	Tests string
	// Run is the pattern of the tests that run; empty for all. They run with -test.short unless Long is set.
	Run  string
	Long bool
	// Func, if not empty, is the one function to break.
	Func string
	// Max bounds the number of mutants; 0 is no bound. Seed chooses which ones run where there are more.
	Max  int
	Seed uint64
	// Parallel is how many mutants are tested at a time; 0 is one.
	Parallel int
	// Out receives a line for each mutant, and a summary.
	Out io.Writer
}

// A Report counts the outcomes of an exploration.
type Report struct {
	// Generated is the number of mutants that the operators make of the package.
	Generated int
	// Counts has the number of mutants with each outcome.
	Counts map[Outcome]int
}

// Rate returns the share of killed mutants, those that timed out with them, among all that could be killed.
func (r Report) Rate() float64 {
	killed := r.Counts[Killed] + r.Counts[TimedOut]
	if killed == 0 {
		return 0
	}
	return float64(killed) / float64(killed+r.Counts[Survived])
}

// Explore breaks a package by operators, runs its tests on each mutant and reports which are killed.
func Explore(ctx context.Context, o Options) (Report, error) {
	p, err := load(ctx, o.Dir)
	if err != nil {
		return Report{}, err
	}
	tests := suite{dir: cmp.Or(o.Tests, o.Dir), run: o.Run, short: !o.Long}
	took, err := tests.clean(ctx)
	if err != nil {
		return Report{}, err
	}
	limit := max(5*took, 10*time.Second)
	mutants := p.generate()
	if o.Func != "" {
		mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return m.function != o.Func })
	}
	r := Report{Generated: len(mutants), Counts: map[Outcome]int{}}
	mutants = draw(mutants, o.Max, o.Seed)
	known := equivalents()
	_, _ = fmt.Fprintf(o.Out, "%s: %d of %d mutants, seed %d; the tests take %v, a mutant has %v\n",
		p.ImportPath, len(mutants), r.Generated, o.Seed, took.Round(10*time.Millisecond), limit.Round(time.Second))
	for m, v := range inOrder(mutants, max(o.Parallel, 1), func(m mutant) verdict {
		if why := known.reason(p.ImportPath, m); why != "" {
			return verdict{Equivalent, why}
		}
		outcome, detail := tests.try(ctx, p, m, limit)
		return verdict{outcome, detail}
	}) {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		r.Counts[v.outcome]++
		_, _ = fmt.Fprintf(o.Out, "%-16s %s (%s)\n", v.outcome, m, v.detail)
	}
	_, _ = fmt.Fprintf(o.Out, "%s: killed %d, timed out %d, survived %d, do not compile %d, equivalent %d, could not be run %d: %.0f %% caught\n",
		p.ImportPath, r.Counts[Killed], r.Counts[TimedOut], r.Counts[Survived], r.Counts[NotCompiled], r.Counts[Equivalent], r.Counts[Failed],
		100*r.Rate())
	return r, nil
}

// A verdict is the outcome of one mutant, with its detail.
type verdict struct {
	outcome Outcome
	detail  string
}

// inOrder calls test for each mutant, several at a time, and yields the verdicts in the order of the mutants.
func inOrder(mutants []mutant, parallel int, test func(mutant) verdict) iter.Seq2[mutant, verdict] {
	return func(yield func(mutant, verdict) bool) {
		var running sync.WaitGroup
		defer running.Wait()
		pending := make(chan chan verdict, parallel-1) // with the one that is waited for below, parallel of them run
		stop := make(chan struct{})
		defer close(stop)
		running.Go(func() {
			for _, m := range mutants {
				done := make(chan verdict, 1)
				select {
				case pending <- done:
				case <-stop:
					return
				}
				running.Go(func() { done <- test(m) })
			}
		})
		for _, m := range mutants {
			if !yield(m, <-<-pending) {
				return
			}
		}
	}
}

// draw returns at most n of the mutants, by the seed, in their order.
func draw(mutants []mutant, n int, seed uint64) []mutant {
	if n == 0 || len(mutants) <= n {
		return mutants
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(mutants))[:n] //nolint:gosec // a sample, to be drawn again by its seed
	slices.Sort(order)
	drawn := make([]mutant, n)
	for i, at := range order {
		drawn[i] = mutants[at]
	}
	return drawn
}
