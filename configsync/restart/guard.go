// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/option"
)

// Guard is a start of what is configured, made from outside it, from disk alone: an ExecStartPre command calls it, so
// that a start is counted and a crashing config is left even where the main process ends before it has read anything,
// or was never able to begin. use is given the config that the start is to use, to put it where the main process reads
// it. o is as for configsync.New, with the Store of the Syncer; Source, Fetcher, Restarter, Reporter and Probes are not
// used. u says how the last run ended, and tells the main process that this start is counted: [Unit.Last] does the rest
// there.
//
// Nothing that is merely remembered keeps a start down: where records can't be read or written, the config is one that
// needs none of them. The error is that of use, a *lkg.BaselineError when the local config is not good, or for the log
// only; used says whether use has returned nil. A kill at any moment leaves the start counted, or not; killed after the
// count, and before it is noted, it counts twice.
func Guard[T any](ctx context.Context, o configsync.Options[T], u Unit, use func(context.Context, configsync.Active[T]) error) (used bool, err error) {
	check := option.For("configsync/restart.Guard", nil)
	check.Require("u.Store", u.Store, "see OwnUnit")
	check.Require("use", use, "what puts a config in place")
	if err := check.Err(); err != nil {
		return false, err
	}
	exit, noteErr := u.Last(ctx)
	o.Source, o.Fetcher, o.Restarter, o.Reporter, o.Probes = nil, nil, nil, nil, nil
	o.BootID = u.Boot
	records := &watched{Store: o.Store}
	if o.Store != nil {
		o.Store = records
	}
	s, err := configsync.New(ctx, o)
	if err != nil {
		return false, errors.Join(noteErr, err)
	}
	a, err := s.Bootstrap(ctx, exit)
	if err != nil {
		return false, errors.Join(noteErr, err)
	}
	if o.Store != nil && !records.failed.Load() {
		noteErr = errors.Join(noteErr, u.counted(ctx))
	}
	if err := use(ctx, a); err != nil {
		return false, errors.Join(noteErr, fmt.Errorf("putting the chosen config in place: %w", err))
	}
	return true, noteErr
}

// watched notices a write that did not land: then the start may not be on record.
type watched struct {
	configsync.Store
	failed atomic.Bool
}

// Put implements configsync.Store.
func (w *watched) Put(ctx context.Context, stream string, payload []byte) error {
	err := w.Store.Put(ctx, stream, payload)
	if err != nil {
		w.failed.Store(true)
	}
	return err
}
