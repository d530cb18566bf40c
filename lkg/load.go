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

// The names of the records. Beliefs lie under the agent's version: see [BeliefStream].
const (
	StreamCurrent       = "current"
	StreamLastKnownGood = "last-known-good"
	StreamMarker        = "planned-restart"
	StreamDesired       = "sync"

	BeliefBad      = "bad-configs"
	BeliefStartups = "startups"
	BeliefTrial    = "trial"
)

// maxVersion bounds the version's part of a record name, before the hash.
const maxVersion = 64

// BeliefStream is the name of a belief record of one agent version, for example "v1.2.3/startups". A version that is
// not a "v" with up to 63 of a-z, 0-9, dot and dash behind it is made so, with a hash, so that different versions get
// different names.
func BeliefStream(version, belief string) string {
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
	l, err := load(ctx, g, version)
	return l.state, err
}

// A loaded state, with the two records whose unknown members must survive.
type loaded struct {
	state   State
	current source
	good    source

	g     Getter
	ctx   context.Context //nolint:containedctx // lives as long as the call of load
	fatal error
}

func load(ctx context.Context, g Getter, version string) (loaded, error) {
	if version == "" {
		return loaded{}, &FieldError{"version", `""`, "must be the version of the agent"}
	}
	l := loaded{g: g, ctx: ctx, state: State{Version: safeVersion(version)}}
	l.sources()
	l.unversioned()
	l.beliefs(version)
	l.g, l.ctx = nil, nil
	if l.fatal != nil {
		return loaded{}, l.fatal
	}
	return l, nil
}

// read decodes one record. It reports whether there is a record and whether it could be read.
func (l *loaded) read(stream string, decode func([]byte) error) (readable bool) {
	if l.fatal != nil {
		return false
	}
	payload, err := l.g.Get(l.ctx, stream)
	switch {
	case err == nil:
		err = decode(payload)
	case errors.Is(err, fs.ErrNotExist):
		return true
	case l.ctx.Err() != nil:
		l.fatal = &RecordError{"reading", stream, err}
		return false
	}
	if err != nil {
		l.state.Notices = append(l.state.Notices, Notice{stream, err})
	}
	return err == nil
}

func (l *loaded) sources() {
	s := &l.state
	s.CurrentLost = !l.read(StreamCurrent, func(b []byte) (err error) {
		l.current, err = decodeSource(b)
		return err
	})
	s.LastKnownGoodLost = !l.read(StreamLastKnownGood, func(b []byte) (err error) {
		l.good, err = decodeSource(b)
		return err
	})
	s.Current = l.current.assignment()
	s.LastKnownGood, s.Previous, s.PromotedAt = l.good.ref, l.good.previous, l.good.promotedAt
}

func (s source) assignment() Assignment { return Assignment{s.ref, s.id, s.at, s.bootID} }

func (l *loaded) unversioned() {
	l.read(StreamMarker, func(b []byte) error {
		var m Marker
		if err := json.Unmarshal(b, &m); err != nil {
			return err
		}
		l.state.Marker = &m
		return nil
	})
	l.read(StreamDesired, func(b []byte) error {
		var o Outcome
		if err := json.Unmarshal(b, &o); err != nil {
			return err
		}
		l.state.Desired = o
		return nil
	})
}

func (l *loaded) beliefs(version string) {
	s := &l.state
	var times []time.Time
	var trial trialRecord
	l.read(BeliefStream(version, BeliefBad), func(b []byte) (err error) {
		s.Bad, err = decodeBad(b)
		return err
	})
	l.read(BeliefStream(version, BeliefStartups), func(b []byte) (err error) {
		times, err = decodeStartups(b)
		return err
	})
	l.read(BeliefStream(version, BeliefTrial), func(b []byte) (err error) {
		trial, err = decodeTrial(b)
		return err
	})
	s.Starts, s.Consumed, s.Soak, s.Floor = join(times, trial.Starts), trial.Consumed, trial.Soak, trial.Floor
	s.Floor = s.floor()
	s.prune()
}
