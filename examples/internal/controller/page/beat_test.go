// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/examples/internal/controller/page"
)

// heard is the last beat that has come.
func (r *reader) heard() page.Beat {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.beat
}

// That the controller does not hear from the API server any more is told though nothing else is, with the time since when; and that it hears again.
func TestReadersHearThatTheControllerIsDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, page.Options{Name: "prod"})
		r, _ := b.reads(0)
		if first := r.heard(); first.Name != "prod" || first.Build == "" || first.Every != 15000 || first.Deaf || first.Now != first.Heard {
			t.Errorf("the first beat is %+v, want it at once, not deaf, each 15 s, with name and build", first)
		}
		last := time.Now()
		b.fleet.Deaf(last)
		time.Sleep(50 * time.Second) // as long as between two words in a quiet cluster
		if beat := r.heard(); beat.Deaf || beat.Heard != last.UnixMilli() {
			t.Errorf("after 50 quiet seconds the beat is %+v, want it not deaf", beat)
		}
		time.Sleep(30 * time.Second)
		if beat := r.heard(); !beat.Deaf || beat.Heard != last.UnixMilli() || beat.Now-beat.Heard < 60000 {
			t.Errorf("after 80 silent seconds the beat is %+v, want it deaf since then", beat)
		}
		b.changes(8, "v2", 2*time.Second)
		late, _ := b.reads(0)
		if beat := late.heard(); !beat.Deaf {
			t.Errorf("who comes later hears %+v, want deaf at once", beat)
		}
		b.fleet.Deaf(time.Time{})
		time.Sleep(15 * time.Second)
		if beat := r.heard(); beat.Deaf {
			t.Errorf("after the API server came back the beat is %+v", beat)
		}
	})
}

// Who is busy with changes hears beats all the same: else they would be taken for lost, or for what is so.
func TestBeatsComeBetweenChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, page.Options{})
		slow, _ := b.reads(16 * time.Second)
		for i := range 150 {
			b.changes(8+i%2, []string{"v1", "v2"}[i/2%2], 2*time.Second)
		}
		slow.mu.Lock()
		defer slow.mu.Unlock()
		if slow.beats < 7 || slow.changes < 5 {
			t.Errorf("in five minutes full of changes who takes 16 s for a write heard %d beats and %d changes, want both in turn", slow.beats, slow.changes)
		}
	})
}

// A proxy is told not to gather events.
func TestEventsAreNotHeldBack(t *testing.T) {
	if r := ask(t, serve(t), http.MethodHead, "http://localhost/events"); r.header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("X-Accel-Buffering is %q, want no", r.header.Get("X-Accel-Buffering"))
	}
}
