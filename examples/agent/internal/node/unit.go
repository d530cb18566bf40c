// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/lkg"
)

// unitDir is the directory in the state directory with the notes of the unit's commands. They are a store of their own,
// which no name of a record reaches: the agent holds the lock of the other one while ExecStop runs.
const unitDir = ".unit"

// lockRetry is how often a lock is tried that another command of the unit holds for a moment.
const lockRetry = 50 * time.Millisecond

// OpenUnit gives the notes of the unit that this process is part of; call closing when done. With an error, which is
// for the log, the Unit can be used all the same, and keeps nothing.
func OpenUnit(ctx context.Context, stateDir string) (u restart.Unit, closing func() error, err error) {
	forgetful := restart.Unit{Store: nothing{}}
	store, err := openSoon(ctx, filepath.Join(stateDir, unitDir))
	if err != nil {
		return forgetful, func() error { return nil }, err
	}
	if u, err = restart.OwnUnit(store); err != nil {
		return forgetful, store.Close, err
	}
	u.Supervises = true // the kubelet is the agent's child
	return u, store.Close, nil
}

// OnUnit calls act with the notes of the unit that this process is part of, if they can be kept.
func OnUnit(ctx context.Context, stateDir string, act func(restart.Unit) error) error {
	u, closing, err := OpenUnit(ctx, stateDir)
	if err == nil {
		err = act(u)
	}
	return errors.Join(err, closing())
}

// nothing is a store that keeps nothing.
type nothing struct{}

// Get implements configsync.Store.
func (nothing) Get(context.Context, string) ([]byte, error) { return nil, fs.ErrNotExist }

// Put implements configsync.Store.
func (nothing) Put(context.Context, string, []byte) error { return nil }

// Delete implements configsync.Store.
func (nothing) Delete(context.Context, string) error { return nil }

// List implements configsync.Store.
func (nothing) List(context.Context, string) ([]string, error) { return nil, nil }

// openSoon waits for a lock that is held for a moment, up to the end of ctx.
func openSoon(ctx context.Context, dir string) (*checkpoint.Store, error) {
	for {
		store, err := checkpoint.Open(dir, checkpoint.Options{})
		if !errors.Is(err, checkpoint.ErrLocked) {
			return store, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		case <-time.After(lockRetry):
		}
	}
}

// LastExit says how the last run of this unit ended, once. Where no command of the unit has noted anything yet, it says
// nothing, and makes nothing. An error is for the log.
func LastExit(ctx context.Context, stateDir string) (exit lkg.Exit, err error) {
	if _, err := os.Lstat(filepath.Join(stateDir, unitDir)); errors.Is(err, fs.ErrNotExist) {
		return lkg.Exit{}, nil
	}
	err = OnUnit(ctx, stateDir, func(u restart.Unit) (err error) {
		exit, err = u.Last(ctx)
		return err
	})
	return exit, err
}
