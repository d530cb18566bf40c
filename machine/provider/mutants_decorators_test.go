// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import "github.com/belayproject/belay/internal/mutate"

func rateMutants() []mutate.Mutant {
	return []mutate.Mutant{
		{Name: "infinite is a rate", File: "ratelimit.go", Run: "TestRateLimitZeroValues",
			Old: "|| math.IsInf(o.Rate, 1)", New: ""},
		{Name: "no number is a rate", File: "ratelimit.go", Run: "TestRateLimitZeroValues",
			Old: "!(o.Rate > 0)", New: "o.Rate <= 0"},
		{Name: "a call waits for ever", File: "ratelimit.go", Run: "TestRateLimitZeroValues",
			Old: "\t\to.Wait = 10 * time.Second\n", New: "\t\to.Wait = 1000 * time.Hour\n"},
		{Name: "whoever can't wait waits", File: "ratelimit.go", Run: "TestRateLimitIsBounded",
			Old: "ok && after > end.Sub(now) {", New: "ok && after > end.Sub(now)+time.Hour {"},
		{Name: "whoever goes takes a turn along", File: "ratelimit.go", Run: "TestRateLimitIsBounded",
			Old: "\tb.waiting--\n\treturn why", New: "\tb.waiting--\n\tb.tokens--\n\treturn why"},
		{Name: "what has gone is counted", File: "ratelimit.go", Run: "TestRateLimitIsBounded",
			Old: "\tb.waiting--\n\treturn why", New: "\treturn why"},
		{Name: "After is not heard", File: "ratelimit.go", Run: "TestRateLimitHonoursAfter",
			Old: "\t\tb.hold(AfterOf(err))\n", New: "\t\tb.hold(0)\n"},
		{Name: "After may be for ever", File: "ratelimit.go", Run: "TestRateLimitHonoursAfter",
			Old: "min(after, longest)", New: "after"},
		{Name: "a full burst follows After", File: "ratelimit.go", Run: "TestRateLimitHonoursAfter",
			Old: "b.at, b.tokens = until, 1", New: "b.at = until"},
		{Name: "the queue is not told", File: "ratelimit.go", Run: "TestRateLimitHoldsTheQueue",
			Old: "held && time.Since(began)+after > b.options.Wait {", New: "held && time.Since(began) < 0 {"},
		{Name: "the burst is refilled to any size", File: "ratelimit.go", Run: "TestRateLimitZeroValues",
			Old: "float64(b.options.Burst))\n\t\tb.at = now", New: "1000)\n\t\tb.at = now"},
		{Name: "a backoff overflows", File: "backoff.go", Run: "TestBackoffGrows",
			Old: "tries > 1 && wait < b.most;", New: "tries > 1 && tries < 300;"},
		{Name: "a class never tries again", File: "backoff.go", Run: "TestBackoffGrows",
			Old: "NotSupported:  {5 * time.Minute, longest}", New: "NotSupported:  {5 * time.Minute, 1000 * time.Hour}"},
		{Name: "an undocumented backoff", File: "backoff.go", Run: "TestBackoffIsDocumented",
			Old: "NotFound:      {time.Second, time.Minute}", New: "NotFound:      {time.Second, 2 * time.Minute}"},
		{Name: "everything is tried elsewhere", File: "backoff.go", Run: "TestRetryElsewhere",
			Old: "return c == Stockout", New: `return c != ""`},
	}
}

func breakerMutants() []mutate.Mutant {
	return []mutate.Mutant{
		{Name: "a row need not be one", File: "breaker.go", Run: "TestBreakerCounts",
			Old: "\t\tb.failures, b.last, b.until = 0, nil, time.Time{}\n", New: "\t\tb.last, b.until = nil, time.Time{}\n"},
		{Name: "a refusal is an answer", File: "breaker.go", Run: "TestBreakerCounts",
			Old: "case InvalidConfig, NotSupported, RateLimited:", New: "case InvalidConfig, NotSupported:"},
		{Name: "an unknown class is an answer", File: "breaker.go", Run: "TestBreakerCounts",
			Old: "switch known(ClassOf(err)) {", New: "switch ClassOf(err) {"},
		{Name: "a plan is an answer", File: "breaker.go", Run: "TestBreakerIsNotFooledByPlans",
			Old: "method == plan ||", New: ""},
		{Name: "it does not say for how long", File: "breaker.go", Run: "TestBreakerRefuses",
			Old: "\t\terr.After = after\n", New: ""},
		{Name: "all try at once", File: "breaker.go", Run: "TestBreakerProbes$",
			Old: "\tb.until = now.Add(b.options.Open)\n\tb.probe++", New: "\tb.probe++"},
		{Name: "a try that fails closes it", File: "breaker.go", Run: "TestBreakerProbes$",
			Old: "probe > 0 || b.failures >= b.options.Failures {", New: "b.failures >= 9+b.options.Failures {"},
		{Name: "a silent try blocks the next", File: "breaker.go", Run: "TestBreakerProbesAgain",
			Old: "\t\t\tb.until = time.Now()\n", New: ""},
		{Name: "an earlier try counts", File: "breaker.go", Run: "TestBreakerProbesAgain",
			Old: "open && probe != b.probe {", New: "open && probe > b.probe {"},
		{Name: "whoever goes opens it", File: "breaker.go", Run: "TestBreakerAndTheCaller",
			Old: "errors.Is(ctx.Err(), context.Canceled) {", New: "errors.Is(ctx.Err(), context.DeadlineExceeded) {"},
		{Name: "late answers count", File: "breaker.go", Run: "TestBreakerIgnoresLateAnswers",
			Old: "open != (probe > 0) || open && probe != b.probe {", New: "open && probe > 0 && probe != b.probe {"},
		{Name: "classes of any name", File: "observe.go", Run: "TestObserve",
			Old: "Class: known(ClassOf(err))", New: "Class: ClassOf(err)"},
		{Name: "no deadline", File: "observe.go", Run: "TestTimeout$",
			Old: "\t\tlimit = defaultTimeout\n", New: "\t\tlimit = 1000 * time.Hour\n"},
		{Name: "a deadline hides what is known", File: "observe.go", Run: "TestTimeoutKeepsWhatIsKnown",
			Old: "late && (ClassOf(err) == Internal || ClassOf(err) == Unavailable) {", New: "late {"},
		{Name: "the caller's deadline is its own", File: "observe.go", Run: "TestTimeoutKeepsWhatIsKnown",
			Old: "bounded.Err() != nil && ctx.Err() == nil;", New: "bounded.Err() != nil;"},
	}
}
