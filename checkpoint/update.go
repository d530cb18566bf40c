// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/belayproject/belay/internal/option"
)

// Update changes a record by what it holds: it reads the newest record, calls change with its
// payload, and puts what change returned. If another call wrote the stream meanwhile, it begins
// again, so change may be called several times. No write is lost.
//
// change is given nil where there is no record, and may return nil for none to be left. An error of
// change ends Update, which then wrote nothing. Errors are those of [Store.Read], then those of
// [Store.Put] or [Store.Delete]; all match exactly one of [ErrNotWritten] and [ErrIndeterminate]. A
// record that is damaged is an error, and change is not called: put a new one then.
func Update(ctx context.Context, s *Store, stream string, change func(old []byte) ([]byte, error)) error {
	check := option.For("checkpoint.Update", nil)
	check.Require("s", s, "the store, from checkpoint.Open")
	check.Require("change", change, "a function from the old payload to the new one")
	err := check.Err()
	if err == nil {
		err = updateRecord(ctx, s, stream, change)
	}
	if err != nil {
		return fmt.Errorf("updating %s: %w", quoted(stream), notWritten(err))
	}
	return nil
}

// UpdateDir is [Update] for a store that several processes write to, such as the old and the new
// process of a plugin that is restarted by surge. It opens the store in dir as [Open] does, updates
// the stream, and closes the store: the lock is held for that time only. If another process has the
// store open, UpdateDir waits until the context ends; the error then matches [ErrLocked], too.
//
// Waiting calls have no order. One that competes with others that update in a loop may wait long:
// give the context a deadline. A change that calls UpdateDir for the same directory waits for
// itself, until the context ends.
//
// All processes use the same options and keep no [Store] open. They read with a [Reader], which
// needs no lock. Each UpdateDir reads all records: it is for small stores.
func UpdateDir(
	ctx context.Context, dir string, o Options, stream string, change func(old []byte) ([]byte, error),
) error {
	check := option.For("checkpoint.UpdateDir", nil)
	check.Require("dir", dir, "the directory of the store")
	check.Require("change", change, "a function from the old payload to the new one")
	err := check.Err()
	if err == nil {
		err = updateDir(ctx, func() (*Store, error) { return Open(dir, o) }, stream, change)
	}
	if err != nil {
		return fmt.Errorf("updating %s in %q: %w", quoted(stream), dir, notWritten(err))
	}
	return nil
}

func updateDir(
	ctx context.Context, open func() (*Store, error), stream string, change func([]byte) ([]byte, error),
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := parseName(stream); err != nil {
		return err
	}
	store, err := openWaiting(ctx, open)
	if err != nil {
		return err
	}
	err = updateRecord(ctx, store, stream, change)
	if closing := store.Close(); err == nil && closing != nil {
		return indeterminate(closing)
	}
	return err
}

func updateRecord(ctx context.Context, s *Store, stream string, change func([]byte) ([]byte, error)) error {
	if err := s.isOpened(); err != nil {
		return err
	}
	n, err := parseName(stream)
	if err != nil {
		return err
	}
	for {
		top, err := topOf(ctx, s, n)
		if err != nil {
			return err
		}
		old, err := s.Read(ctx, stream)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil && old.Payload == nil {
			old.Payload = []byte{} // a record of 0 bytes is not the absence of one
		}
		payload, err := change(old.Payload)
		if err != nil {
			return err
		}
		wrote, err := putAfter(ctx, s, n, written{top: top, gen: old.Generation}, payload)
		if wrote || err != nil {
			return err
		}
	}
}

// written is what a stream was when it was read: the highest generation that was ever named, and
// the one that was read (0 = none).
type written struct{ top, gen uint64 }

func topOf(ctx context.Context, s *Store, n name) (uint64, error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.calls.endCall()
	st, err := s.tree.findStream(ctx, n)
	if st == nil || err != nil {
		return 0, err
	}
	s.books.mu.Lock()
	defer s.books.mu.Unlock()
	return st.top, nil
}

// putAfter puts or deletes, unless the stream was written since it was as given.
func putAfter(ctx context.Context, s *Store, n name, as written, payload []byte) (wrote bool, err error) {
	if payload == nil && as.gen == 0 {
		return true, nil
	}
	if int64(len(payload)) > s.maxPayload {
		return false, fmt.Errorf("%w: %d bytes, may have %d", ErrTooLarge, len(payload), s.maxPayload)
	}
	if err := s.begin(ctx); err != nil {
		return false, err
	}
	defer s.calls.endCall()
	st, err := s.tree.enterStream(ctx, n)
	if err != nil {
		return false, err
	}
	if err := st.take(ctx); err != nil {
		return false, err
	}
	defer st.release()
	s.books.mu.Lock()
	same := st.top == as.top && (as.gen == 0 || st.find(as.gen) != nil)
	s.books.mu.Unlock()
	if !same {
		return false, nil
	}
	if payload != nil {
		return true, s.writer.putRecord(ctx, st, payload)
	}
	return true, s.remover.removeStream(st)
}
