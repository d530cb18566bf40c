// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"testing"
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

var old, next = protocol.Revision{Name: "old"}, protocol.Revision{Name: "next"}

// applying is the view of an attempt that is being applied in boot b1, by a process that has called nothing yet.
func applying() view {
	r := protocol.Report{Attempt: 3, Phase: protocol.PhaseApplying, Revision: next.Name, Known: true}
	s := Status{Report: r, Current: old, From: old, BootID: "b1"}
	return view{
		online: true,
		shadow: Shadow{Node: "n", UID: "u", Orders: protocol.Orders{Grant: 3, Proceed: 3}, Status: s},
		disk:   record{Format: format, UID: "u", Status: s, Key: "u-3", Boot: "b1"},
		seen:   Observation{Current: old, BootID: "b1"},
		limits: limits{verifyFor: time.Minute, verifyEvery: 10 * time.Second, verifyWithin: 10 * time.Minute, applyTimeout: time.Hour},
	}
}

// What an attempt that was begun comes to, by what was seen: the rows of the table in the package comment.
func TestDecideApplying(t *testing.T) {
	now := time.Unix(1e9, 0)
	returned := ran{key: "u-3", at: now.Add(-time.Minute)}
	rebooting := ran{key: "u-3", at: now.Add(-time.Minute), rebooting: true}
	for _, c := range []struct {
		name   string
		change func(v *view)
		act    act
		event  protocol.Event
		after  time.Duration
	}{
		{"same boot", func(*view) {}, run, "", 0},
		{"same boot, target", func(v *view) { v.seen.Current = next }, run, "", 0}, // whether it was done is the key's affair
		{"returned, old", func(v *view) { v.mind.ran = returned }, tell, protocol.EventFellBack, 0},
		{"returned, suspects", func(v *view) { v.mind.ran, v.seen.Suspect = returned, next }, tell, protocol.EventApplied, 0},
		{"another boot, suspects", func(v *view) {
			v.seen = Observation{Current: old, Suspect: next, BootID: "b2"}
		}, tell, protocol.EventApplied, 0},
		{"returned, suspects another", func(v *view) {
			v.mind.ran, v.seen.Suspect = returned, protocol.Revision{Name: "third"}
		}, tell, protocol.EventFellBack, 0},
		{"returned, target", func(v *view) { v.mind.ran, v.seen.Current = returned, next }, tell, protocol.EventApplied, 0},
		{"returned, neither", func(v *view) { v.mind.ran, v.seen.Current = returned, protocol.Revision{} }, tell, protocol.EventBroke, 0},
		{"returned, of another attempt", func(v *view) { v.mind.ran = ran{key: "u-2"} }, run, "", 0},
		{"returned, of the way back", func(v *view) { v.mind.ran = ran{key: "u-3", back: true} }, run, "", 0},
		{"another boot, old", func(v *view) { v.seen.BootID = "b2"; v.shadow.Status.BootID = "b2" }, tell, protocol.EventFellBack, 0},
		{"another boot, target", func(v *view) { v.seen = Observation{Current: next, BootID: "b2"} }, tell, protocol.EventApplied, 0},
		{"another boot, another digest", func(v *view) {
			v.shadow.Status.Report.Revision, v.seen = "next@d1", Observation{Current: protocol.Revision{Name: "next", Digest: "d2"}, BootID: "b2"}
		}, tell, protocol.EventBroke, 0},
		{"another boot, nothing known of before", func(v *view) {
			v.disk.Status.From, v.seen = protocol.Revision{}, Observation{BootID: "b2"}
		}, tell, protocol.EventBroke, 0},
		{"rebooting", func(v *view) { v.mind.ran = rebooting }, wait, "", 59 * time.Minute},
		{"rebooting for too long", func(v *view) { v.mind.ran, v.limits.applyTimeout = rebooting, time.Minute }, tell, protocol.EventFellBack, 0},
		{"no record", func(v *view) { v.disk = record{} }, tell, protocol.EventFellBack, 0},
		{"record of another node", func(v *view) { v.disk.UID = "v" }, tell, protocol.EventFellBack, 0},
		{"offline", func(v *view) { v.online, v.shadow = false, Shadow{} }, run, "", 0},
		{"offline, returned", func(v *view) { v.online, v.shadow, v.mind.ran = false, Shadow{}, returned }, tell, protocol.EventFellBack, 0},
		{"disk ahead", func(v *view) { v.disk.Status.Report.Phase = protocol.PhaseDone }, tell, protocol.EventRecall, 0},
		{"disk behind", func(v *view) { v.disk.Status.Report.Phase = protocol.PhaseCommitted }, run, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := applying()
			c.change(&v)
			before := v
			got := decide(v, now)
			if got.act != c.act || got.event != c.event || got.after != c.after {
				t.Errorf("got act %d, event %q, after %s, want %d, %q, %s", got.act, got.event, got.after, c.act, c.event, c.after)
			}
			if v != before {
				t.Errorf("decide has changed its argument to %+v", v)
			}
		})
	}
}

// Only running time that was seen to be healthy is credited, and all running time is spent.
func TestCredit(t *testing.T) {
	const every, most = 10 * time.Second, 30 * time.Second
	at := func(s int, v Verdict) check {
		return check{key: "k", boot: "b", at: time.Unix(int64(s), 0), verdict: v}
	}
	before := trial{Boot: "b", Healthy: time.Minute, Spent: 2 * time.Minute}
	for _, c := range []struct {
		name           string
		last, now      check
		healthy, spent time.Duration
	}{
		{"two passed", at(0, Pass), at(12, Pass), 72 * time.Second, 132 * time.Second},
		{"the last one did not", at(0, NotYet), at(12, Pass), time.Minute, 132 * time.Second},
		{"this one not yet", at(0, Pass), at(12, NotYet), time.Minute, 132 * time.Second},
		{"this one fails", at(0, Pass), at(12, Fail), 0, 132 * time.Second},
		{"a long gap", at(0, Pass), at(300, Pass), 90 * time.Second, 7 * time.Minute},
		{"first of the process", check{}, at(12, Pass), time.Minute, 130 * time.Second},
		{"last of another attempt", check{key: "j", boot: "b", verdict: Pass}, at(12, Pass), time.Minute, 130 * time.Second},
		{"another boot", at(0, Pass), check{key: "k", boot: "c", at: time.Unix(12, 0), verdict: Pass}, 0, 130 * time.Second},
	} {
		got := before.credit(c.last, c.now, every, most)
		if got.Healthy != c.healthy || got.Spent != c.spent || got.Boot != c.now.boot {
			t.Errorf("%s: got %+v, want %s healthy, %s spent in boot %q", c.name, got, c.healthy, c.spent, c.now.boot)
		}
	}
}

// A record is read as it was written, and one with a field that is not known is not read.
func TestRecordRoundTrip(t *testing.T) {
	want := applying().disk
	want.Trial, want.Why, want.Revert, want.Back = trial{Boot: "b", Healthy: 1, Spent: 2, Why: why{"A", "b"}}, why{"R", "m"}, true, "b9"
	payload, err := want.encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeRecord(payload); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	payload, err := applying().disk.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(payload)
	f.Add([]byte(`{"format":1}`))
	f.Fuzz(func(_ *testing.T, payload []byte) {
		r, err := decodeRecord(payload)
		if err != nil {
			return
		}
		v := applying()
		v.disk = r
		decide(v, time.Unix(1e9, 0)) // must not panic, whatever is on the disk
	})
}
