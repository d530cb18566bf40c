// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

// Whatever a slot holds comes back from its line, which is one that people can read (R-RO-01).
func TestSlotIsALine(t *testing.T) {
	for line, want := range map[string]v1alpha1.Slot{
		"node=worker-1 uid=3c1d attempt=12 rollout=7e0f":                            {Node: "worker-1", UID: "3c1d", Attempt: 12, Rollout: "7e0f"},
		"node=a uid=u attempt=1 rollout=r state=Broken":                             {Node: "a", UID: "u", Attempt: 1, Rollout: "r", State: "Broken"},
		"node=a uid=u attempt=1 rollout=r keys=class/Intrusive,zone/a":              {Node: "a", UID: "u", Attempt: 1, Rollout: "r", Keys: []string{"class/Intrusive", "zone/a"}},
		"node=a uid=u attempt=1 rollout=r state=Suspect keys=group/a%20b%2C%25=%C3": {Node: "a", UID: "u", Attempt: 1, Rollout: "r", State: "Suspect", Keys: []string{"group/a b,%=\xc3"}},
		"node= uid=%0A attempt=-1 rollout=":                                         {UID: "\n", Attempt: -1},
	} {
		want.Keys = append([]string(nil), want.Keys...)
		got, err := v1alpha1.ParseSlot(want.String())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v, want %+v", want.String(), got, err, want)
		}
		if !strings.Contains(line, "%C3") && want.String() != line {
			t.Errorf("got the line %q, want %q", want.String(), line)
		}
	}
}

// A line that says anything else, or anything twice, is no slot: who reads it guesses nothing (R-RO-01).
func TestLineThatIsNoSlot(t *testing.T) {
	const good = "node=a uid=u attempt=1 rollout=r"
	for _, c := range []struct{ line, want string }{
		{"", "no such field"},
		{"a", "a: there is no such field"},
		{good + " max=3", "max: there is no such field"},
		{good + " ", "no such field"},
		{good + " keys=%zz", "invalid URL escape"},
		{"node=a uid=u attempt=one rollout=r", "attempt: "},
		{"node=a uid=u attempt=01 rollout=r", "in this order"},
		{"node=a uid=u attempt=+1 rollout=r", "in this order"},
		{good + " node=b", "in this order"},
		{"uid=u node=a attempt=1 rollout=r", "in this order"},
		{"node=a uid=u attempt=1", "in this order"},
		{good + " state=", "in this order"},
		{"node=%61 uid=u attempt=1 rollout=r", "in this order"},
	} {
		if s, err := v1alpha1.ParseSlot(c.line); err == nil || !strings.Contains(err.Error(), c.want) || !reflect.DeepEqual(s, v1alpha1.Slot{}) {
			t.Errorf("%q: got %+v, %v, want an error with %q", c.line, s, err, c.want)
		}
	}
	var s v1alpha1.Slot
	if err := s.UnmarshalJSON([]byte(`{"node":"a"}`)); err == nil || !strings.Contains(err.Error(), "a slot is a line of text") {
		t.Errorf("an object: got %v, want an error", err)
	}
}
