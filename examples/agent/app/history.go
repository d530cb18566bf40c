// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/agent/internal/node"
	"github.com/belayproject/belay/examples/agent/internal/wire"
	"github.com/belayproject/belay/examples/internal/agent/history"
)

// writeDown has what happens to configs written down, and told as events, also right before a restart.
func (a *agent) writeDown(ctx context.Context) error {
	if a.store == nil {
		return nil
	}
	journal, err := history.Open(ctx, a.store, nil)
	if err != nil {
		a.log.Error(err, "History is not written down", "stateDir", a.s.StateDir)
		return ctx.Err()
	}
	a.journal = journal
	send, err := wire.Events(a.s)
	if err != nil {
		return err
	}
	if send != nil {
		a.teller = history.NewTeller(journal, send)
	}
	a.options.Reporter = configsync.Joined(journal, a.options.Reporter)
	a.options.BeforeRestart = func(ctx context.Context, now configsync.Status, _ configsync.Change) {
		if err := journal.Report(ctx, now); err != nil {
			a.log.Error(err, "History is not written down before a restart")
		}
		if a.teller == nil {
			return
		}
		if err := a.teller.Flush(ctx); err != nil {
			a.log.Info("Events are sent after the restart", "why", err.Error())
		}
	}
	return nil
}

// tell passes on what is written down until ctx ends, what an earlier run has left included.
func (a *agent) tell(ctx context.Context) {
	if a.teller != nil {
		a.teller.Run(ctx)
	}
}

// totals are those of the journal; nil where none is kept.
func (a *agent) totals() func() []history.Total {
	if a.journal == nil {
		return nil
	}
	return a.journal.Totals
}

// openFile makes ready what writes the file that the child reads, and notices when somebody else has. store may be nil.
func (a *agent) openFile(ctx context.Context, store configsync.Store) (err error) {
	a.file, err = node.Rendered(ctx, a.s.Place(a.s.Render), a.s.DriftPolicy(), store, func(ctx context.Context, e history.Entry) error {
		a.log.Error(nil, "Rendered file was changed by somebody else", "file", a.s.Target(a.s.Render), "why", e.Why)
		if a.journal == nil {
			return nil
		}
		return a.journal.Add(ctx, e)
	})
	if err == nil {
		a.trouble.drift = a.file.Now
	}
	return err
}

// look looks at that file until ctx ends.
func (a *agent) look(ctx context.Context) {
	a.file.Run(ctx, a.s.DriftInterval, func(err error) { a.log.Error(err, "Look at the rendered file was not all that it should be") })
}
