// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxStarts bounds the `startups` record and its evidence. It leaves room for the highest threshold, its two implied
// starts, and twice as many explained ones.
const maxStarts = 36

// trialRecord is the `trial` record: the evidence behind the bare times of `startups`.
type trialRecord struct {
	Starts   []Start    `json:"starts"`
	Consumed string     `json:"consumed,omitempty"`
	Soak     soakRecord `json:"soak,omitzero"`
	Case     *Case      `json:"case,omitempty"`
	Binary   string     `json:"binary,omitempty"`
}

func decodeTrial(payload []byte) (trialRecord, error) {
	var r trialRecord
	if len(payload) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(payload, &r); err != nil {
		return trialRecord{}, err
	}
	k := &r.Soak
	k.Accumulated, k.Sum, k.Failed = max(k.Accumulated, 0), max(k.Sum, 0), max(k.Failed, 0)
	r.Soak = r.Soak.nextRun()
	if c := r.Case; c != nil && !c.isWhole() {
		r.Case = nil
	}
	return r, nil
}

func encodeTrial(s *State) ([]byte, error) {
	r := trialRecord{Consumed: s.Consumed, Soak: s.Soak, Case: s.openCase(), Binary: s.Binary}
	for _, st := range s.Starts {
		if st.evidenced() {
			r.Starts = append(r.Starts, st)
		}
	}
	return json.Marshal(r)
}

// decodeStartups reads the list of times.
func decodeStartups(payload []byte) ([]time.Time, error) {
	if len(payload) == 0 {
		return nil, nil
	}
	var texts []string
	if err := json.Unmarshal(payload, &texts); err != nil {
		return nil, err
	}
	out := make([]time.Time, 0, len(texts))
	for _, text := range texts {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func encodeStartups(starts []Start) ([]byte, error) {
	texts := make([]string, 0, len(starts))
	for i := range starts {
		texts = append(texts, starts[i].At.Format(time.RFC3339Nano))
	}
	return json.Marshal(texts)
}

// join puts the evidence to the times, both oldest first. A time without evidence becomes a start without assignment;
// evidence without a time is kept.
func join(times []time.Time, evidence []Start) []Start {
	out := make([]Start, 0, len(times)+1)
	rest := evidence
	for _, at := range times {
		i := slices.IndexFunc(rest, func(st Start) bool { return st.At.Equal(at) })
		if i < 0 {
			out = append(out, Start{At: at, Cause: CauseUnknown, Detail: "its evidence was lost"})
			continue
		}
		out = append(out, rest[:i+1]...)
		rest = rest[i+1:]
	}
	return append(out, rest...)
}

// addStart appends a start and keeps the list short.
func (s *State) addStart(st Start) {
	s.Starts = append(s.Starts, st)
	s.prune()
}

// prune drops the starts that matter least, the oldest first, and never the last one.
func (s *State) prune() {
	for len(s.Starts) > maxStarts {
		victim, least := 0, 99
		for i := range s.Starts[:len(s.Starts)-1] {
			if w := s.weight(&s.Starts[i]); w < least {
				victim, least = i, w
			}
		}
		s.Starts = slices.Delete(s.Starts, victim, victim+1)
	}
}

// weight says how much a start still matters: least for explained starts of other assignments and for those that count
// against nothing any more, most for the one that adopted the current config.
func (s *State) weight(st *Start) int {
	own := st.Assignment == s.Current.ID || !st.evidenced()
	unexplained := st.Cause.unexplained()
	switch {
	case own && st.N == 1:
		return 4
	case st.Settled:
		return 0
	case (unexplained || st.Cause.isWeak()) && (own || st.After.fallback()):
		return 3
	case own:
		return 2
	case unexplained:
		return 1
	default:
		return 0
	}
}

// tally counts the unexplained starts of the current assignment. The first start is not counted: it adopted the config.
// A start without evidence belongs to the assignment if its time, or its place in the list, is after it.
func tally(s *State) (counted int, ignored []ignoredStart) {
	first := firstStart(s)
	seen := false
	for i := range s.Starts {
		st := &s.Starts[i]
		if !belongs(s, st, seen) {
			continue
		}
		seen = true
		switch why := ignore(st, i, first); why {
		case "":
			counted++
		default:
			ignored = append(ignored, ignoredStart{*st, why})
		}
	}
	return counted, ignored
}

func belongs(s *State, st *Start, seen bool) bool {
	if st.evidenced() {
		return st.Assignment == s.Current.ID
	}
	return seen || st.At.After(s.Current.At)
}

// firstStart is the index of the start that adopted the current assignment: the one that says so, or else, if there is
// no evidence of any, the oldest.
func firstStart(s *State) int {
	oldest, numbered := -1, false
	for i := range s.Starts {
		st := &s.Starts[i]
		if !belongs(s, st, oldest >= 0) {
			continue
		}
		if st.N == 1 {
			return i
		}
		numbered = numbered || st.N > 1
		if oldest < 0 {
			oldest = i
		}
	}
	if numbered {
		return -1 // the first one is long gone from the list
	}
	return oldest
}

// ignore says why a start of the trial does not count, or nothing.
func ignore(st *Start, i, first int) string {
	switch {
	case i == first:
		return "first start of the assignment"
	case i < first:
		return "cut off before the first start of the assignment was on record"
	case st.Settled:
		return "before the config was found not to blame"
	case !st.Cause.unexplained():
		return string(st.Cause) + ": " + st.Detail
	case st.After.fallback():
		return "the run that ended used the " + string(st.After.Role) + " config"
	default:
		return ""
	}
}

// counts reports whether a start that is being recorded counts against its assignment. It then takes away the healthy
// time that came before: a config earns its promotion between two crashes, not over them.
func (st *Start) counts() bool { return st.N > 1 && st.Cause.unexplained() && !st.After.fallback() }

// evidence is what a bad entry says beside its reason. It is bounded: the oldest ignored starts are left out.
func evidence(counted int, ignored []ignoredStart, cause error) string {
	if cause != nil {
		return cause.Error()
	}
	const most = 8
	var b strings.Builder
	b.WriteString("counted starts: " + strconv.Itoa(counted) + ", ignored: " + strconv.Itoa(len(ignored)))
	for _, ig := range ignored[max(0, len(ignored)-most):] {
		b.WriteString("; " + ig.Why)
	}
	return b.String()
}
