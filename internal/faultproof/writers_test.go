// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
)

// streams are written to at once, some of them in a directory that they share.
var streams = []string{"current", "last-known-good", "startups", "d/a", "d/b", "d/c"}

// writers are goroutines, one a stream, that put and sometimes delete.
type writers struct {
	keeper  keeper
	deletes bool
	ledger  *ledger // gives the values
	journal journal
	each    int // writes of a stream; 0 = until an error
}

// run returns, when all writers have ended, the first error of each.
func (w writers) run(ctx context.Context, seed uint64) []error {
	errs := make([]error, len(streams))
	var wg sync.WaitGroup
	for i, stream := range streams {
		wg.Go(func() { errs[i] = w.stream(ctx, stream, random(seed, uint64(i)+1)) })
	}
	wg.Wait()
	return errs
}

func (w writers) stream(ctx context.Context, stream string, rng *rand.Rand) error {
	for n := 0; w.each == 0 || n < w.each; n++ {
		v := w.ledger.next(stream)
		if w.deletes && rng.IntN(12) == 0 {
			v = 0
		}
		if err := w.write(ctx, stream, v); err != nil {
			return fmt.Errorf("%s: %w", stream, err)
		}
	}
	return nil
}

func (w writers) write(ctx context.Context, stream string, v value) error {
	w.journal.begin(stream, v)
	err := w.keeper.put(ctx, stream, v)
	w.journal.done(stream, v, err)
	return err
}
