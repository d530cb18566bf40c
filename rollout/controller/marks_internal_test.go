// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
)

// The mark that comes with a cordon is written over one of an attempt before, and not over that of a later one; what was recorded first in the slot stays.
func TestMarkIsOvertaken(t *testing.T) {
	want := mark{Attempt: 7, Rollout: "r", From: "v1", Baseline: "now"}
	lost := mark{Attempt: 7, Rollout: "r", Lost: true}
	for _, c := range []struct {
		name, held string
		writes     bool
		baseline   string
		attempt    int
	}{
		{"none", "", true, "now", 7},
		{"not to be read", "{", true, "now", 7},
		{"an attempt before", `{"attempt":6,"rollout":"r","baseline":"first"}`, true, "first", 7},
		{"another rollout before", `{"attempt":6,"rollout":"s","baseline":"theirs"}`, true, "now", 7},
		{"the same", `{"attempt":7,"rollout":"r","baseline":"first"}`, true, "first", 7},
		{"the same, with its cordon", `{"attempt":7,"rollout":"r","baseline":"first","closed":true}`, false, "first", 7},
		{"an attempt before that was lost", `{"attempt":6,"rollout":"r","lost":true}`, true, "now", 7},
		{"a later attempt", `{"attempt":8,"rollout":"s","baseline":"theirs"}`, false, "theirs", 8},
	} {
		annotations := map[string]string{}
		if c.held != "" {
			annotations[HeldAnnotation] = c.held
		}
		got, change := markOf(annotations).overtake(annotations, want)
		if int(got.Attempt) != c.attempt || got.Baseline != c.baseline || len(change) > 0 != c.writes || !got.there {
			t.Errorf("%s: got %+v, and %d changes; want attempt %d with baseline %q, written: %t", c.name, got, len(change), c.attempt, c.baseline, c.writes)
		}
	}
	for held, want := range map[string]mark{
		`{"attempt":6,"rollout":"r","from":"v0","baseline":"first"}`:  {Attempt: 7, Rollout: "r", From: "v0", Baseline: "first"},
		`{"attempt":6,"rollout":"s","from":"v0","baseline":"theirs"}`: {Attempt: 7, Rollout: "r", From: "v0", Baseline: "theirs"},
		`{"attempt":6,"rollout":"r","lost":true}`:                     lost,
		`{`: lost,
	} {
		got, _ := markOf(map[string]string{HeldAnnotation: held}).overtake(map[string]string{HeldAnnotation: held}, lost)
		if got.there, got.ScaleDown = false, false; !got.Closed {
			t.Errorf("over %s: %+v does not say that the node is cordoned", held, got)
		}
		if got.Closed = false; got != want {
			t.Errorf("over %s: got %+v, want %+v", held, got, want)
		}
	}
}
