// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"slices"
	"sync"
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
