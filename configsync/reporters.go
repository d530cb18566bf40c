// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Joined returns a Reporter that tells all of the given ones, at the same time, so that one that hangs doesn't keep the others from
// reporting. Its Report returns when all have returned, with their errors joined in the order of the arguments. Nil ones are left out.
func Joined(reporters ...Reporter) Reporter {
	return joined(slices.DeleteFunc(slices.Clone(reporters), func(r Reporter) bool { return r == nil }))
}

type joined []Reporter

// Report tells every Reporter.
func (j joined) Report(ctx context.Context, s Status) error {
	errs := make([]error, len(j))
	var wg sync.WaitGroup
	for i, r := range j {
		wg.Go(func() { errs[i] = r.Report(ctx, s) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// headStart is how long the others wait at the most for the one that is told first.
const headStart = time.Second

// First returns a Reporter that tells one of the given ones before the others: it is for the report that somebody waits for, so that it is not behind
// reports of the same news that nobody does, of this node or, where many report at once, of others. The rest are told at the same time when it has
// returned, or after a second, so that one that hangs doesn't keep the others from reporting. Its Report returns when all have returned, with
// their errors joined in the order of the arguments. Nil ones are left out.
func First(reporter Reporter, rest ...Reporter) Reporter {
	if reporter == nil {
		return Joined(rest...)
	}
	return first{reporter, Joined(rest...)}
}

type first struct{ reporter, rest Reporter }

// Report tells every Reporter.
func (f first) Report(ctx context.Context, s Status) error {
	var errs [2]error
	told := make(chan struct{})
	go func() {
		defer close(told)
		errs[0] = f.reporter.Report(ctx, s)
	}()
	start := time.NewTimer(headStart)
	defer start.Stop()
	select {
	case <-told:
	case <-start.C:
	}
	errs[1] = f.rest.Report(ctx, s)
	<-told
	return errors.Join(errs[0], errs[1])
}
