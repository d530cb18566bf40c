// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/option"
)

// A Getter gives the newest payload of a record. A record that never was is an error for which
// errors.Is(err, fs.ErrNotExist) holds. An empty payload is a record.
type Getter interface {
	Get(ctx context.Context, stream string) ([]byte, error)
}

// A Store keeps records. Put is durable once it returned nil, and after an error the record is the old or the new one,
// never a mixture.
type Store interface {
	Getter
	Put(ctx context.Context, stream string, payload []byte) error
}

// The names of the records. Beliefs lie under the agent's version: see [beliefStream].
const (
	streamCurrent       = "current"
	streamLastKnownGood = "last-known-good"
	streamMarker        = "planned-restart"
	streamDesired       = "sync"

	beliefBad      = "bad-configs"
	beliefStartups = "startups"
	beliefTrial    = "trial"
)

// maxVersion bounds the version's part of a record name, before the hash.
const maxVersion = 64

// beliefStream is the name of a belief record of one agent version, for example "v1.2.3/startups". A version that is
// not a "v" with up to 63 of a-z, 0-9, dot and dash behind it is made so, with a hash, so that different versions get
// different names.
func beliefStream(version, belief string) string {
	return safeVersion(version) + "/" + belief
}

func safeVersion(version string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		default:
			return '-'
		}
	}, strings.ToLower(version))
	if !strings.HasPrefix(safe, "v") {
		safe = "v" + safe
	}
	if safe == version && len(safe) <= maxVersion && len(safe) > 1 {
		return safe
	}
	sum := sha256.Sum256([]byte(version))
	return safe[:min(len(safe), maxVersion)] + "-" + hex.EncodeToString(sum[:4])
}

// Load reads the state of an agent version without changing anything, for a status command beside a live agent. Records
// that can not be read are in State.Notices. The error is that of ctx, or of a missing version.
func Load(ctx context.Context, g Getter, version string) (State, error) {
	l, err := load(ctx, "lkg.Load", g, version)
	return l.state, err
}

// A loaded state, with the two records whose unknown members must survive.
type loaded struct {
	state   State
	current source
	good    source
}

func load(ctx context.Context, call string, g Getter, version string) (loaded, error) {
	check := option.For(call, ErrInvalid)
	check.Require("store", g, "see checkpoint.Open")
	check.Require("version", version, "that of the agent")
	if err := check.Err(); err != nil {
		return loaded{}, err
	}
	l := loaded{state: State{Version: safeVersion(version)}}
	var fatal error
	read := func(stream string, decode func([]byte) error) (readable bool) {
		if fatal != nil {
			return false
		}
		err := readRecord(ctx, g, stream, decode)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			fatal = &recordError{"reading", stream, err}
		default:
			l.state.Notices = append(l.state.Notices, Notice{stream, err})
		}
		return false
	}
	l.sources(read)
	l.unversioned(read)
	l.beliefs(version, read)
	if fatal != nil {
		return loaded{}, fatal
	}
	return l, nil
}

// A reader decodes one record, if there is one, and reports whether it could be read.
type reader func(stream string, decode func([]byte) error) (readable bool)

// readRecord decodes one record. No record is no error.
func readRecord(ctx context.Context, g Getter, stream string, decode func([]byte) error) error {
	payload, err := g.Get(ctx, stream)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return decode(payload)
}

func (l *loaded) sources(read reader) {
	s := &l.state
	s.CurrentLost = !read(streamCurrent, func(b []byte) (err error) {
		l.current, err = decodeSource(b)
		return err
	})
	s.LastKnownGoodLost = !read(streamLastKnownGood, func(b []byte) (err error) {
		l.good, err = decodeSource(b)
		return err
	})
	s.Current = l.current.assignment()
	s.takeGood(l.good)
}

func (s *State) takeGood(good source) {
	s.LastKnownGood, s.GoodID = good.ref, good.id
	s.Previous, s.PromotedAt = good.previous, good.promotedAt
}

func (s source) assignment() Assignment {
	a := Assignment{Ref: s.ref, ID: s.id, At: s.at, BootID: s.bootID}
	if !s.ref.IsLocal() {
		a.message = using(RoleCurrent, s.ref, "")
	}
	return a
}

func (l *loaded) unversioned(read reader) {
	read(streamMarker, func(b []byte) error {
		var m restartMarker
		if err := json.Unmarshal(b, &m); err != nil {
			return err
		}
		l.state.Marker = &m
		return nil
	})
	read(streamDesired, func(b []byte) error {
		var o Outcome
		if err := json.Unmarshal(b, &o); err != nil {
			return err
		}
		l.state.Desired = o
		return nil
	})
}

func (l *loaded) beliefs(version string, read reader) {
	s := &l.state
	var times []time.Time
	var trial trialRecord
	read(beliefStream(version, beliefBad), func(b []byte) (err error) {
		s.Bad, err = decodeBad(b)
		return err
	})
	read(beliefStream(version, beliefStartups), func(b []byte) (err error) {
		times, err = decodeStartups(b)
		return err
	})
	read(beliefStream(version, beliefTrial), func(b []byte) (err error) {
		trial, err = decodeTrial(b)
		return err
	})
	s.Starts, s.Consumed, s.Soak = join(times, trial.Starts), trial.Consumed, trial.Soak
	s.Case, s.Binary = trial.Case, trial.Binary
	s.keepCase()
	if last := s.lastStart(); last != nil && !last.evidenced() {
		s.Soak.Accumulated = 0 // that start was recorded, and what it took away was not
	}
	s.prune()
}

// flushEvery is how much healthy time may be added up before it is written.
const flushEvery = 10 * time.Second

// A recordWriter writes the records of a [Tracker], and knows which of them memory is ahead of. Its errors wrap
// [ErrRecord].
type recordWriter struct {
	store      Store
	version    string        // of the agent, which has beliefs of its own
	unsaved    time.Duration // healthy time not yet written
	keptSum    time.Duration // Soak.Sum as it was written last
	dirtyBad   bool          // memory is ahead of the bad-configs record
	dirtyTrial bool          // memory is ahead of the trial record
}

// put writes a record that encode makes.
func (w *recordWriter) put(ctx context.Context, op, stream string, encode func() ([]byte, error)) error {
	payload, err := encode()
	if err == nil {
		err = w.store.Put(ctx, stream, payload)
	}
	if err != nil {
		return &recordError{op, stream, err}
	}
	return nil
}

func (w *recordWriter) putStartups(ctx context.Context, op string, starts []Start) error {
	return w.put(ctx, op, beliefStream(w.version, beliefStartups), func() ([]byte, error) {
		return encodeStartups(starts)
	})
}

func (w *recordWriter) putTrial(ctx context.Context, op string, s *State) error {
	w.dirtyTrial = true
	err := w.put(ctx, op, beliefStream(w.version, beliefTrial), func() ([]byte, error) { return encodeTrial(s) })
	if err == nil {
		w.dirtyTrial, w.unsaved, w.keptSum = false, 0, s.Soak.Sum
	}
	return err
}

func (w *recordWriter) putBad(ctx context.Context, op string, s *State) error {
	w.dirtyBad = true
	err := w.put(ctx, op, beliefStream(w.version, beliefBad), func() ([]byte, error) { return encodeBad(s.Bad) })
	if err == nil {
		w.dirtyBad = false
	}
	return err
}

// listBad lists a config as bad. One that is listed keeps its first reason, and is written only if it is not yet on
// record.
func (w *recordWriter) listBad(ctx context.Context, op string, s *State, e BadEntry) error {
	if !s.addBad(e) && !w.dirtyBad {
		return nil
	}
	return w.putBad(ctx, op, s)
}

// saveHealth writes added-up healthy time, and how long the run is healthy by now, not too often.
func (w *recordWriter) saveHealth(ctx context.Context, added time.Duration, s *State) error {
	w.unsaved += max(added, 0)
	longer := s.Soak.Sum >= max(flushEvery, 2*w.keptSum) && (hasUnsettled(s) || s.openCase() != nil)
	if w.unsaved < flushEvery && !longer {
		return nil
	}
	return w.putTrial(ctx, "recording healthy time", s)
}
