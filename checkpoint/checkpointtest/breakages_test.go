// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belayproject/belay/checkpoint"
)

// broken is a Memory with one thing wrong: what is not set is right.
type broken struct {
	Memory
	put    func(b *broken, ctx context.Context, stream string, payload []byte) error
	read   func(b *broken, ctx context.Context, stream string) (checkpoint.Record, error)
	remove func(b *broken, ctx context.Context, stream string) error
	list   func(b *broken, ctx context.Context, dir string) ([]string, error)
	reopen func(b *broken)
	n      int
}

func (b *broken) Put(ctx context.Context, stream string, payload []byte) error {
	if b.put != nil {
		return b.put(b, ctx, stream, payload)
	}
	return b.Memory.Put(ctx, stream, payload)
}

func (b *broken) Read(ctx context.Context, stream string) (checkpoint.Record, error) {
	if b.read != nil {
		return b.read(b, ctx, stream)
	}
	return b.Memory.Read(ctx, stream)
}

func (b *broken) Get(ctx context.Context, stream string) ([]byte, error) {
	rec, err := b.Read(ctx, stream)
	return rec.Payload, err
}

func (b *broken) Delete(ctx context.Context, stream string) error {
	if b.remove != nil {
		return b.remove(b, ctx, stream)
	}
	return b.Memory.Delete(ctx, stream)
}

func (b *broken) List(ctx context.Context, dir string) ([]string, error) {
	if b.list != nil {
		return b.list(b, ctx, dir)
	}
	return b.Memory.List(ctx, dir)
}

// breakage is a store with one promise broken, and the case that has to see it.
type breakage struct {
	name   string
	caught string
	store  *broken
}

func breakages() []breakage {
	return slices.Concat(brokenReads(), brokenWrites(), brokenGenerations(), brokenNames())
}

func brokenReads() []breakage {
	return []breakage{
		{"absence is an empty payload", "AbsentIsNotExist", &broken{read: func(b *broken, ctx context.Context, s string) (checkpoint.Record, error) {
			rec, err := b.Memory.Read(ctx, s)
			if err != nil && ctx.Err() == nil && checkpoint.ValidateStream(s) == nil {
				return checkpoint.Record{Stream: s}, nil
			}
			return rec, err
		}}},
		{"an empty payload is absence", "GetReturnsWhatWasPut", &broken{put: func(b *broken, ctx context.Context, s string, p []byte) error {
			if len(p) == 0 && ctx.Err() == nil && checkpoint.ValidateStream(s) == nil {
				return b.Memory.Delete(ctx, s)
			}
			return b.Memory.Put(ctx, s, p)
		}}},
		{"white space is trimmed", "GetReturnsWhatWasPut", &broken{put: func(b *broken, ctx context.Context, s string, p []byte) error {
			return b.Memory.Put(ctx, s, bytes.TrimSpace(p))
		}}},
		{"returned payloads are shared", "PayloadsAreCopies", &broken{read: func(b *broken, ctx context.Context, s string) (checkpoint.Record, error) {
			if rec, err := b.Memory.Read(ctx, s); err != nil {
				return rec, err
			}
			return b.records[s], nil
		}}},
		{"errors after close are others", "ClosedIsErrClosed", &broken{read: func(b *broken, ctx context.Context, s string) (checkpoint.Record, error) {
			if b.closed {
				return checkpoint.Record{}, errors.New("closed")
			}
			return b.Memory.Read(ctx, s)
		}}},
		{"digests are of something else", "DigestIsOfThePayload", &broken{read: func(b *broken, ctx context.Context, s string) (checkpoint.Record, error) {
			rec, err := b.Memory.Read(ctx, s)
			rec.Digest = strings.ToUpper(rec.Digest)
			return rec, err
		}}},
	}
}

func brokenGenerations() []breakage {
	return []breakage{
		{"every put is a write", "UnchangedPutIsNoWrite", &broken{put: func(b *broken, ctx context.Context, s string, p []byte) error {
			if err := b.Memory.Put(ctx, s, append(slices.Clip(p), 0)); err != nil {
				return err
			}
			return b.Memory.Put(ctx, s, p)
		}}},
		{"the digest is forgotten in a restart", "UnchangedPutIsNoWrite", &broken{reopen: func(b *broken) {
			for s, rec := range b.records {
				rec.Digest = "sha256:"
				b.records[s] = rec
			}
		}}},
		{"generations start again after a delete", "GenerationsAreUsedOnce", &broken{remove: func(b *broken, ctx context.Context, s string) error {
			err := b.Memory.Delete(ctx, s)
			delete(b.top, s)
			return err
		}}},
		{"generations start again after a restart", "GenerationsAreUsedOnce", &broken{reopen: func(b *broken) { clear(b.top) }}},
		{"the last write is lost in a restart", "RecordsOutliveTheProcess", &broken{put: func(b *broken, ctx context.Context, s string, p []byte) error {
			b.n++
			return b.Memory.Put(ctx, s, p)
		}, reopen: func(b *broken) {
			if b.n > 10 {
				delete(b.records, "empty")
			}
		}}},
		{"an older payload is not written again", "ChangedPutIsAWrite", &broken{put: func(b *broken, ctx context.Context, s string, p []byte) error {
			if string(p) == "a" && len(b.records) > 0 && b.records[s].Generation == 2 {
				return nil
			}
			return b.Memory.Put(ctx, s, p)
		}}},
	}
}

func brokenNames() []breakage {
	return []breakage{
		{"deleting what is absent is an error", "DeleteRemovesTheStream", &broken{remove: func(b *broken, ctx context.Context, s string) error {
			if _, err := b.Memory.Read(ctx, s); err != nil {
				return fmt.Errorf("%w: %w", checkpoint.ErrNotWritten, err)
			}
			return b.Memory.Delete(ctx, s)
		}}},
		{"deleting takes names by their beginning", "StreamsAreIndependent", &broken{remove: func(b *broken, ctx context.Context, s string) error {
			err := b.Memory.Delete(ctx, s)
			for other := range b.records {
				if err == nil && strings.HasPrefix(other, s+".") {
					delete(b.records, other)
				}
			}
			return err
		}}},
		{"lists name what is below, too", "ListNamesTheDirectory", &broken{list: func(b *broken, ctx context.Context, dir string) ([]string, error) {
			names, err := b.Memory.List(ctx, dir)
			if err == nil && dir == "" {
				for s := range b.records {
					if strings.Contains(s, "/") {
						names = append(names, s)
					}
				}
				slices.Sort(names)
			}
			return names, err
		}}},
		{"lists are not sorted", "ListNamesTheDirectory", &broken{list: func(b *broken, ctx context.Context, dir string) ([]string, error) {
			names, err := b.Memory.List(ctx, dir)
			slices.Reverse(names)
			return names, err
		}}},
		{"names are made safe instead of refused", "NamesAreChecked", &broken{put: func(b *broken, ctx context.Context, s string, p []byte) error {
			return b.Memory.Put(ctx, strings.ToLower(strings.ReplaceAll(s, "..", "")), p)
		}}},
		{"long names are cut", "LongNamesWork", &broken{put: func(b *broken, ctx context.Context, s string, p []byte) error {
			if checkpoint.ValidateStream(s) != nil {
				return b.Memory.Put(ctx, s, p)
			}
			return b.Memory.Put(ctx, s[:min(len(s), 64)], p)
		}}},
	}
}

func brokenWrites() []breakage {
	return []breakage{
		{"too large payloads are cut", "PayloadsAreLimited", &broken{put: func(b *broken, ctx context.Context, s string, p []byte) error {
			return b.Memory.Put(ctx, s, p[:min(len(p), maxPayload)])
		}}},
		{"the context is not looked at", "EndedContextEndsTheCall", &broken{put: func(b *broken, ctx context.Context, s string, p []byte) error {
			return b.Memory.Put(context.WithoutCancel(ctx), s, p)
		}}},
		{"errors of a write have no class", "WriteErrorsAreClassed", &broken{put: func(b *broken, ctx context.Context, s string, p []byte) error {
			if err := checkpoint.ValidateStream(s); err != nil {
				return err
			}
			return b.Memory.Put(ctx, s, p)
		}}},
		{"puts at once get lost", "ConcurrentPutsAreWhole", &broken{put: func(b *broken, ctx context.Context, s string, p []byte) error {
			if bytes.HasPrefix(p, []byte("2-")) {
				return nil
			}
			return b.Memory.Put(ctx, s, p)
		}}},
	}
}
