// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// The record decoders read what people and other versions wrote. Whatever they accept must encode, and mean the same
// when it is read again.

func FuzzSourceRecord(f *testing.F) {
	f.Add([]byte(``))
	f.Add([]byte(`{"configMapRef":{"namespace":"fleet","name":"a","uid":"u","key":"kubelet","digest":"sha256:0"},` +
		`"assignedAt":"2030-01-01T00:00:00.5Z","assignment":"1","bootID":"b","policy":"Pin"}`))
	f.Add([]byte(`{"configMapRef":{"uid":"u","x":[1]},"previous":{"configMapRef":{"uid":"p"}},` +
		`"promotedAt":"2030-01-01T00:00:00Z","future":null}`))
	f.Add([]byte(`{"configMapRef":{"UID":"u"}}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`[]`))
	f.Add([]byte(" "))
	f.Fuzz(func(t *testing.T, payload []byte) {
		s, err := decodeSource(payload)
		if err != nil {
			return
		}
		if (len(payload) == 0) != s.ref.IsLocal() {
			t.Fatalf("%q reads as %+v (rule: only an empty payload is the local config)", payload, s.ref)
		}
		out, err := s.encode()
		if err != nil {
			t.Fatalf("%q reads and does not encode: %v", payload, err)
		}
		again, err := decodeSource(out)
		if err != nil {
			t.Fatalf("%q became %q: %v", payload, out, err)
		}
		if again.assignment().Ref != s.ref || again.id != s.id || again.previous != s.previous || !again.at.Equal(s.at) ||
			len(again.extra) != len(s.extra) || len(again.refExtra) != len(s.refExtra) {
			t.Fatalf("%q became %q: %+v, then %+v", payload, out, s, again)
		}
		if last, err := again.encode(); err != nil || !bytes.Equal(last, out) {
			t.Fatalf("%q encodes as %q, then as %q (%v)", payload, out, last, err)
		}
	})
}

func FuzzBadRecord(f *testing.F) {
	f.Add([]byte(`{"u":{"time":"2030-01-01T00:00:00Z","reason":"failed to validate current (UID: u)"}}`))
	f.Add([]byte(`{"u":{"key":"k","digest":"d"},"u k2 d2":{"key":"k2","digest":"d2"},` +
		`" ":{},"v":null,"w":7,"x":{"time":1}}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		bad, err := decodeBad(payload)
		if err != nil {
			return
		}
		for _, e := range bad {
			s := State{Bad: bad}
			if e.Reason == "" || s.badEntry(e.Ref) == nil {
				t.Fatalf("%q: entry %+v has no reason or is not found", payload, e)
			}
		}
		out, err := encodeBad(bad)
		if err != nil {
			t.Fatalf("%q reads and does not encode: %v", payload, err)
		}
		again, err := decodeBad(out)
		if err != nil {
			t.Fatalf("%q became %q: %v", payload, out, err)
		}
		s := State{Bad: again}
		for _, e := range bad {
			if s.badEntry(e.Ref) == nil {
				t.Fatalf("%q became %q, which forgot %+v", payload, out, e)
			}
		}
	})
}

func FuzzBeliefRecords(f *testing.F) {
	f.Add([]byte(`["2030-01-01T00:00:00Z","2030-01-01T00:00:00.000000001+01:00"]`),
		[]byte(`{"starts":[{"at":"2030-01-01T00:00:00Z","cause":"Crash","assignment":"1","n":2,"used":{"role":"current"}}],`+
			`"consumed":"m","soak":{"accumulated":-5,"run":7},"floor":{"role":"local"}}`))
	f.Add([]byte(`[]`), []byte(`{}`))
	f.Add([]byte(`null`), []byte(`null`))
	f.Fuzz(func(t *testing.T, startups, trial []byte) {
		times, err := decodeStartups(startups)
		if err != nil {
			times = nil
		}
		rec, err := decodeTrial(trial)
		if err != nil {
			rec = trialRecord{}
		}
		if rec.Soak.Accumulated < 0 || rec.Soak.Run != 0 {
			t.Fatalf("%q: soak %+v", trial, rec.Soak)
		}
		s := State{
			Starts: join(times, rec.Starts), Soak: rec.Soak, Case: rec.Case, Current: Assignment{Ref: Ref{UID: "x"}, ID: "1"},
		}
		s.prune()
		s.addStart(Start{At: time.Unix(1_900_000_000, 0).UTC(), Cause: CauseCrash, Assignment: "1", N: 3})
		if len(s.Starts) == 0 || len(s.Starts) > maxStarts || s.lastStart().Cause != CauseCrash {
			t.Fatalf("%d starts, last %+v", len(s.Starts), s.lastStart())
		}
		v := Decide(Input{State: s, Recorded: true}, func(Ref) Check { return Check{Outcome: CheckOK} })
		if v.Role == "" || v.Condition.Reason == "" {
			t.Fatalf("no verdict: %+v", v)
		}
		reencode(t, &s)
	})
}

// reencode writes the belief records and reads them back.
func reencode(t *testing.T, s *State) {
	t.Helper()
	list, err := encodeStartups(s.Starts)
	if err != nil {
		t.Fatal(err)
	}
	evidence, err := encodeTrial(s)
	if err != nil {
		return // a year that no record can hold, in evidence made by hand: refused with an error
	}
	times, err := decodeStartups(list)
	if err != nil {
		t.Fatalf("%q: %v", list, err)
	}
	rec, err := decodeTrial(evidence)
	if err != nil {
		t.Fatalf("%q: %v", evidence, err)
	}
	if got := join(times, rec.Starts); len(got) != len(s.Starts) {
		t.Fatalf("%d starts became %d", len(s.Starts), len(got))
	}
}

func FuzzMarkerAndDesired(f *testing.F) {
	f.Add([]byte(`{"id":"m","at":"2030-01-01T00:00:00Z","kind":"Adoption","bootID":"b"}`))
	f.Add([]byte(`{"outcome":"Invalid","cause":"x","at":"2030-01-01T00:00:00Z"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		var m restartMarker
		var o Outcome
		if json.Unmarshal(payload, &m) == nil {
			cause, detail := classify(nil, &m, moment{BootID: m.BootID}, Exit{})
			if (cause != CauseUnknown && m.ID == "") || detail == "" {
				t.Fatalf("%+v gives %s %q", m, cause, detail)
			}
			if _, err := m.encode(); err != nil {
				t.Fatal(err)
			}
		}
		if json.Unmarshal(payload, &o) == nil {
			if o.cause() == "" || (o.wrong() && !o.unclear()) {
				t.Fatalf("%+v has no cause, or is wrong and clear", o)
			}
			if _, err := o.encode(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestJoinKeepsTheOrder: times without evidence, evidence without times.
func TestJoinKeepsTheOrder(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0).UTC() }
	ev := func(n int) Start { return Start{At: at(n), N: n, Cause: CauseCrash} }
	var got []int
	for _, st := range join([]time.Time{at(1), at(2), at(4), at(5)}, []Start{ev(2), ev(3), ev(4)}) {
		got = append(got, int(st.At.Unix())*10+st.N)
	}
	want := []int{10, 22, 33, 44, 50}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// TestBadListIsBounded: the oldest go first, never one that a record names.
func TestBadListIsBounded(t *testing.T) {
	ref := func(n int) Ref { return Ref{UID: "u", Key: "k", Digest: time.Duration(n).String()} }
	s := State{Current: Assignment{Ref: ref(0)}, LastKnownGood: ref(1), Previous: ref(2)}
	for n := range maxBad + 10 {
		s.addBad(BadEntry{Ref: ref(n), Reason: "r"})
	}
	if len(s.Bad) != maxBad {
		t.Errorf("%d entries, want %d", len(s.Bad), maxBad)
	}
	for _, n := range []int{0, 1, 2, 13, maxBad + 9} {
		if s.badEntry(ref(n)) == nil {
			t.Errorf("entry %d is gone", n)
		}
	}
	if s.badEntry(ref(3)) != nil {
		t.Error("the oldest entry is still there")
	}
	b, err := encodeBad(s.Bad)
	if err != nil {
		t.Fatal(err)
	}
	again, err := decodeBad(b)
	if err != nil || len(again) != maxBad {
		t.Errorf("read back %d entries, %v", len(again), err)
	}
}
