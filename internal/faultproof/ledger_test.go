// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/belayproject/belay/checkpoint"
)

// value is what a stream holds: the number in its payload, or 0 for no record.
type value int

// journal hears of each write before it begins and when it is over.
type journal interface {
	begin(stream string, v value)
	done(stream string, v value, err error)
}

// ledger is the journal, kept outside of the disk, of what a store must know after a crash.
type ledger struct {
	mu           sync.Mutex
	streams      map[string]*entry
	acknowledged int
}

type entry struct {
	last  value   // the highest number that was ever used
	acked value   // the last acknowledged one
	maybe []value // begun and not refused: a crash decides
	floor uint64  // no lower generation may be read any more

	story []string // what happened to the stream, for who has to explain a loss
}

func (e *entry) tell(format string, args ...any) {
	e.story = append(e.story[max(0, len(e.story)-15):], fmt.Sprintf(format, args...))
}

func newLedger() *ledger { return &ledger{streams: map[string]*entry{}} }

func (l *ledger) of(stream string) *entry {
	e := l.streams[stream]
	if e == nil {
		e = &entry{}
		l.streams[stream] = e
	}
	return e
}

// next gives a value that the stream never had.
func (l *ledger) next(stream string) value {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(stream).last + 1
}

func (l *ledger) begin(stream string, v value) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.of(stream)
	e.last = max(e.last, v)
	e.maybe = append(e.maybe, v)
	e.tell("write %d", v)
}

// done enters how a write ended. One that was refused must never be seen.
func (l *ledger) done(stream string, v value, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.of(stream)
	e.tell("wrote %d: %v", v, err)
	switch {
	case err == nil:
		if v > 0 && v != e.acked { // the same payload need not be written again
			e.floor++
		}
		e.acked, e.maybe = v, nil
		l.acknowledged++
	case errors.Is(err, checkpoint.ErrNotWritten):
		if i := slices.Index(e.maybe, v); i >= 0 { // a stream may be removed more than once
			e.maybe = slices.Delete(e.maybe, i, i+1)
		}
	}
}

// judge compares what a keeper reads with what it must: E1 to E4. It goes on from what was read: that must not be lost any more.
func (l *ledger) judge(k keeper) (broken []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, stream := range slices.Sorted(maps.Keys(l.streams)) {
		e := l.streams[stream]
		v, gen, err := k.look(stream)
		switch {
		case err != nil:
			broken = append(broken, fmt.Sprintf("%s: %v; %s", stream, err, strings.Join(e.story, "; ")))
			continue
		case v != e.acked && !slices.Contains(e.maybe, v):
			broken = append(broken, fmt.Sprintf("%s: holds %d, acknowledged was %d, not confirmed were %d; %s",
				stream, v, e.acked, e.maybe, strings.Join(e.story, "; ")))
		case v != 0 && gen < e.floor && gen != 0:
			broken = append(broken, fmt.Sprintf("%s: generation %d, at least %d was there; %s",
				stream, gen, e.floor, strings.Join(e.story, "; ")))
		}
		e.tell("read %d, generation %d", v, gen)
		e.acked, e.maybe, e.floor = v, nil, max(gen, e.floor)
	}
	return broken
}

// payload makes the record of a value. Every part of it depends on the stream and the value, and so does its size: most have up to
// 8 KiB, some 64 KiB, and a few more than the store writes in one call.
func payload(stream string, v value) []byte {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", stream, v)
	sum := h.Sum64()
	size := int(sum>>8) % (8 << 10)
	switch sum % 40 {
	case 0:
		size = 300 << 10
	case 1, 2:
		size = 64 << 10
	}
	text := []byte(fmt.Sprintf("%s %d\n", stream, v))
	return append(text, bytes.Repeat([]byte(fmt.Sprintf("%x ", sum)), size/17)...)
}

// valueOf reads a payload back. Anything but a whole one of the same stream is an error: E2.
func valueOf(stream string, text []byte) (value, error) {
	line, _, _ := strings.Cut(string(text[:min(len(text), 64)]), "\n")
	name, number, _ := strings.Cut(line, " ")
	n, err := strconv.Atoi(number)
	if err != nil || name != stream || !bytes.Equal(text, payload(stream, value(n))) {
		return 0, fmt.Errorf("%s%d bytes", tornPrefix, len(text))
	}
	return value(n), nil
}

const tornPrefix = "holds what nobody put: "

// countTorn counts those records among what is broken that are not whole.
func countTorn(broken []string) (n int) {
	for _, b := range broken {
		if strings.Contains(b, tornPrefix) {
			n++
		}
	}
	return n
}

// keeper keeps values on a disk. A value of 0 removes the stream.
type keeper interface {
	put(ctx context.Context, stream string, v value) error
	look(stream string) (v value, generation uint64, err error) // generation 0 = there is no such thing
	close() error
}

// subject is an implementation of keepers.
type subject struct {
	name    string
	deletes bool
	prepare func(dir string) error // makes what the directory needs, before the first crash
	open    func(dir string) (keeper, error)
}
