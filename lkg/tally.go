// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"strconv"
	"strings"
)

// tally counts the unexplained starts of the current assignment. The first start is not counted: it adopted the config.
// A start without evidence belongs to the assignment if its time, or its place in the list, is after it.
func tally(s *State) (counted int, ignored []Ignored) {
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
			ignored = append(ignored, Ignored{*st, why})
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

// counts reports whether a start that is being recorded counts against its assignment. It then takes away the healthy time that
// came before: a config earns its promotion between two crashes, not over them.
func (st *Start) counts() bool { return st.N > 1 && st.Cause.unexplained() && !st.After.fallback() }

// evidence is what a bad entry says beside its reason. It is bounded: the oldest ignored starts are left out.
func evidence(counted int, ignored []Ignored, cause error) string {
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
