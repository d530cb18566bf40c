// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/agent/internal/admin"
	"github.com/belayproject/belay/examples/internal/agent/history"
	"github.com/belayproject/belay/examples/internal/agent/report"
	"github.com/belayproject/belay/lkg"
)

// Stopped is a node whose agent does not run.
type Stopped struct {
	// Dir is the state directory.
	Dir string
	// Options are the agent's. Without Init and Default the next start can't be told.
	Options Options
}

var _ admin.Agent = (*Stopped)(nil)

// Status reads what is on record.
func (s *Stopped) Status(ctx context.Context) (report.Document, error) {
	e, err := Explain(ctx, s.Dir, s.Options)
	if err != nil {
		return report.Document{}, err
	}
	return report.Build(time.Now(), nil, e), nil
}

// Explain reads what is on record in a state directory, and says what the next start would do, beside a running agent
// or without one. It changes nothing. The error matches fs.ErrNotExist where no agent has run yet.
func Explain(ctx context.Context, dir string, o Options) (configsync.Explanation, error) {
	r, err := checkpoint.OpenReader(dir, checkpoint.Options{})
	if errors.Is(err, fs.ErrNotExist) {
		return configsync.Explanation{}, fmt.Errorf("no agent has run on state directory %q yet: %w", dir, fs.ErrNotExist)
	}
	if err != nil {
		return configsync.Explanation{}, err
	}
	return explain(ctx, r, o)
}

// History reads what has happened to the configs of a node, the oldest first; nothing where no journal is kept yet.
func History(ctx context.Context, dir string) ([]history.Entry, error) {
	r, err := checkpoint.OpenReader(dir, checkpoint.Options{})
	if err != nil {
		return nil, err
	}
	entries, _, err := history.Read(ctx, r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// explain asks for the next start only where the local config is known: every decision begins with it.
func explain(ctx context.Context, g lkg.Getter, o Options) (configsync.Explanation, error) {
	if o.Init != nil || o.Default != nil {
		return configsync.Explain(ctx, g, o)
	}
	state, err := lkg.Load(ctx, g, o.Version)
	return configsync.Explanation{State: state}, err
}

// ForgetBad takes back what is held against every version of the object with that UID. The next start tries it again.
func (s *Stopped) ForgetBad(ctx context.Context, uid string) error {
	return s.change(ctx, func(y *syncer) error { return y.Forget(ctx, uid) })
}

// UseLocal makes the next start use the local config.
func (s *Stopped) UseLocal(ctx context.Context, reason string) error {
	return s.change(ctx, func(y *syncer) error { return y.UseLocal(ctx, reason) })
}

type syncer = configsync.Syncer[*kubelet.Config]

// change holds the state directory's lock while act works on the records.
func (s *Stopped) change(ctx context.Context, act func(*syncer) error) error {
	store, err := checkpoint.Open(s.Dir, checkpoint.Options{})
	if err != nil {
		return err
	}
	o := s.Options
	o.Store = store
	if o.Init == nil && o.Default == nil {
		o.Default = func() *kubelet.Config { return nil } // asked for at starts only, and nothing starts here
	}
	y, err := configsync.New(ctx, o)
	if err == nil {
		err = act(y)
	}
	return errors.Join(err, store.Close())
}
