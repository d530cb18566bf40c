// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// Run checks a provider, one subtest a rule, logs the report, and writes it where the harness says.
func Run(t *testing.T, h Harness) {
	t.Helper()
	s, err := newSuite(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules() {
		t.Run(r.Name, func(t *testing.T) {
			s.check(t.Context(), r).tell(t, h.Skips)
		})
	}
	t.Log(s.report)
	if h.Report == "" {
		return
	}
	if err := s.report.Write(h.Report); err != nil {
		t.Error(err)
	}
}

// tell has a test end as the rule did.
func (r Result) tell(t *testing.T, skips []string) {
	t.Helper()
	for _, u := range r.Unchecked {
		t.Log("unchecked: " + u)
	}
	known := slices.Contains(skips, r.Name)
	switch {
	case r.Outcome == Failed:
		t.Error(r)
	case r.Outcome == Skipped && skips == nil:
		t.Skip(r)
	case r.Outcome == Skipped && !known:
		t.Errorf("%v; it is not among the Skips of the harness", r)
	case r.Outcome == Passed && known:
		t.Errorf("%v; it is among the Skips of the harness", r)
	case known:
		t.Log(r)
	}
}

// Check checks a provider without a test. The error is about the harness; what is wrong with the provider is in the report. When ctx ends, the
// rules that are left fail.
func Check(ctx context.Context, h Harness) (Report, error) {
	s, err := newSuite(ctx, h)
	if err != nil {
		return Report{}, err
	}
	for _, r := range rules() {
		s.check(ctx, r)
	}
	return s.report, nil
}

// Rules returns all rules in the order in which they are run.
func Rules() []Rule {
	var all []Rule
	for _, r := range rules() {
		all = append(all, r.Rule)
	}
	return all
}

// suite is what rules have in common.
type suite struct {
	h      Harness
	run    string // random, so that nothing was used before
	can    provider.Abilities
	lacks  map[need]string
	base   Inventory // what was there before
	left   []string  // what rules have left behind
	report Report

	mu      sync.Mutex
	leaks   []string // where secrets were seen
	secrets map[string]string
	serial  int
}

func newSuite(ctx context.Context, h Harness) (*suite, error) {
	if h.New == nil || h.Inventory == nil || h.Config == nil {
		return nil, errors.New("suite: the harness needs New, Inventory and Config")
	}
	random := make([]byte, 8)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("suite: random number: %w", err)
	}
	s := &suite{h: h, run: hex.EncodeToString(random), lacks: map[need]string{}}
	s.report = Report{Provider: h.Name, Began: time.Now()}
	s.hide()
	p, err := h.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("suite: new client: %w", err)
	}
	if s.base, err = h.Inventory(ctx); err != nil {
		return nil, fmt.Errorf("suite: inventory: %w", err)
	}
	s.probe(ctx, p)
	return s, nil
}

// failure and skip end a rule: they are panics, so that helpers need not return them.
type (
	failure string
	skip    string
)

// check runs one rule and adds its result to the report.
func (s *suite) check(ctx context.Context, r rule) Result {
	began := time.Now()
	result := Result{Rule: r.Rule, Outcome: Passed}
	if why := s.missing(r); why != "" {
		result.Outcome, result.Why = Skipped, why
	} else {
		k := &checker{suite: s, ctx: ctx, rule: r.Name}
		result.Outcome, result.Why = k.protect(r.check)
		k.tidy()
		result.Unchecked = k.unchecked
	}
	result.Seconds = time.Since(began).Seconds()
	s.report.Results = append(s.report.Results, result)
	return result
}

// missing says why a rule can't be checked.
func (s *suite) missing(r rule) string {
	for _, n := range r.needs {
		if why := s.lacks[n]; why != "" {
			return why
		}
	}
	return ""
}

// protect turns panics into outcomes: those of helpers, and those of the provider.
func (k *checker) protect(check func(*checker)) (outcome Outcome, why string) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case failure:
			outcome, why = Failed, string(v)
		case skip:
			outcome, why = Skipped, string(v)
		default:
			outcome, why = Failed, fmt.Sprintf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	if err := k.ctx.Err(); err != nil {
		k.failf("not run: %v", err)
	}
	check(k)
	return Passed, ""
}
