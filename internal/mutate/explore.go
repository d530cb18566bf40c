// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
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
		mutants = slices.DeleteFunc(mutants, func(m Mutant) bool { return m.Func != o.Func })
	}
	r := Report{Generated: len(mutants), Counts: map[Outcome]int{}}
	mutants = draw(mutants, o.Max, o.Seed)
	known := equivalents()
	_, _ = fmt.Fprintf(o.Out, "%s: %d of %d mutants, seed %d; the tests take %v, a mutant has %v\n",
		p.ImportPath, len(mutants), r.Generated, o.Seed, took.Round(10*time.Millisecond), limit.Round(time.Second))
	for _, m := range mutants {
		outcome, detail := Equivalent, known.reason(p.ImportPath, m)
		if detail == "" {
			outcome, detail = tests.try(ctx, p, m, limit)
		}
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		r.Counts[outcome]++
		_, _ = fmt.Fprintf(o.Out, "%-16s %s (%s)\n", outcome, m, detail)
	}
	_, _ = fmt.Fprintf(o.Out, "%s: killed %d, timed out %d, survived %d, do not compile %d, equivalent %d, could not be run %d: %.0f %% caught\n",
		p.ImportPath, r.Counts[Killed], r.Counts[TimedOut], r.Counts[Survived], r.Counts[NotCompiled], r.Counts[Equivalent], r.Counts[Failed],
		100*r.Rate())
	return r, nil
}

// draw returns at most n of the mutants, by the seed, in their order.
func draw(mutants []Mutant, n int, seed uint64) []Mutant {
	if n == 0 || len(mutants) <= n {
		return mutants
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(mutants))[:n] //nolint:gosec // a sample, to be drawn again by its seed
	slices.Sort(order)
	drawn := make([]Mutant, n)
	for i, at := range order {
		drawn[i] = mutants[at]
	}
	return drawn
}
