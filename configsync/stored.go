// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/belayproject/belay/lkg"
)

// The directories of the Store that hold payloads: one stream an object UID in checkpoints, and one a version in good.
// The last known good config never shares a file with the assigned one, so no bad sector takes both.
const (
	dirCheckpoints = "checkpoints"
	dirGood        = "good"
)

func checkpointStream(uid string) string { return dirCheckpoints + "/" + uid }

// goodStream names one version: a mutable object keeps its UID over edits, and the good version must outlive them.
func goodStream(r lkg.Ref) string {
	hex := strings.TrimPrefix(r.Digest, "sha256:")
	return dirGood + "/" + r.UID + "." + hex[:min(12, len(hex))]
}

// An objectStore keeps the objects of configs in a Store: a checkpoint of each assigned one, and a copy of each good one.
// What it loads is verified by UID and digest.
type objectStore struct{ store Store }

// keepCheckpoint stores an object before anything names it as assigned.
func (s objectStore) keepCheckpoint(ctx context.Context, obj Object) error {
	return s.store.Put(ctx, checkpointStream(obj.UID), obj.Raw)
}

// load returns the stored object that r names, from its checkpoint or the good copy, verified by UID and digest.
func (s objectStore) load(ctx context.Context, r lkg.Ref) (Object, error) {
	if err := validateUID(r.UID); err != nil {
		return Object{}, fmt.Errorf("loading the checkpoint: %w", err)
	}
	var errs []error
	for _, stream := range []string{checkpointStream(r.UID), goodStream(r)} {
		obj, err := s.loadStream(ctx, stream, r)
		if err == nil {
			return obj, nil
		}
		errs = append(errs, err)
	}
	return Object{}, errors.Join(errs...)
}

func (s objectStore) loadStream(ctx context.Context, stream string, r lkg.Ref) (Object, error) {
	raw, err := s.store.Get(ctx, stream)
	if err != nil {
		return Object{}, fmt.Errorf("loading %q: %w", stream, err)
	}
	obj, err := ParseObject(raw)
	if err != nil {
		return Object{}, fmt.Errorf("loading %q: %w", stream, err)
	}
	if got := obj.Digest(); obj.UID != r.UID || got != r.Digest {
		return Object{}, fmt.Errorf("loading %q: %w: want UID %q with digest %s, found UID %q with digest %s",
			stream, ErrMismatch, r.UID, r.Digest, obj.UID, got)
	}
	return obj, nil
}

// keepGood stores the good config's own copy before anything names it as good.
func (s objectStore) keepGood(ctx context.Context, r lkg.Ref) error {
	if r.IsLocal() {
		return nil
	}
	obj, err := s.load(ctx, r)
	if err != nil {
		return err
	}
	return s.store.Put(ctx, goodStream(r), obj.Raw)
}

// pruneUnnamed deletes the payloads that the records in st do not name. It deletes nothing unless everything that is named can be loaded, so
// that trouble never shrinks the choice.
func (s objectStore) pruneUnnamed(ctx context.Context, st *lkg.State) error {
	keep := map[string]bool{}
	for _, r := range []lkg.Ref{st.Current.Ref, st.LastKnownGood, st.Previous} {
		if r.IsLocal() {
			continue
		}
		keep[checkpointStream(r.UID)], keep[goodStream(r)] = true, true
	}
	extra, err := s.listUnnamed(ctx, keep)
	if err != nil || len(extra) == 0 {
		return err
	}
	for _, r := range []lkg.Ref{st.Current.Ref, st.LastKnownGood, st.Previous} {
		if r.IsLocal() || st.BadEntry(r) != nil {
			continue
		}
		if _, err := s.load(ctx, r); err != nil {
			return fmt.Errorf("pruning: %w", err)
		}
	}
	for _, stream := range extra {
		if err := s.store.Delete(ctx, stream); err != nil {
			return fmt.Errorf("pruning %q: %w", stream, err)
		}
	}
	return nil
}

// listUnnamed lists the stored payloads that are not in keep.
func (s objectStore) listUnnamed(ctx context.Context, keep map[string]bool) ([]string, error) {
	var extra []string
	for _, dir := range []string{dirCheckpoints, dirGood} {
		streams, err := s.store.List(ctx, dir)
		if err != nil {
			return nil, fmt.Errorf("pruning: listing %q: %w", dir, err)
		}
		for _, stream := range streams {
			if !keep[stream] {
				extra = append(extra, stream)
			}
		}
	}
	return extra, nil
}
