// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/klog/v2"
)

// The events of the stream.
const (
	eventModel  = "model"
	eventChange = "change"
	eventBeat   = "beat"
)

// A Beat is what a reader is told at first, and then again and again, so that one who hears nothing knows that the connection is lost.
type Beat struct {
	// Now is the time by the clock of the controller, Heard when it has last heard from the API server, both in milliseconds since 1970: a
	// reader takes the difference, as its own clock may be another. Heard is 0 before the first word.
	Now   int64 `json:"now"`
	Heard int64 `json:"heard"`
	// Deaf says that Heard is longer ago than in a quiet cluster: what is shown is what was then.
	Deaf bool `json:"deaf"`
	// Every is the time between two beats in milliseconds.
	Every int64 `json:"every"`
	// Name says which cluster it is, Build which files the page has.
	Name  string `json:"name,omitempty"`
	Build string `json:"build"`
}

// beatAt is the beat of a time at which the API server was last heard from at another.
func (h *Hub) beatAt(now, heard time.Time) Beat {
	b := Beat{Now: now.UnixMilli(), Every: h.o.Beat.Milliseconds(), Name: h.o.Name, Build: h.build}
	if !heard.IsZero() {
		b.Heard, b.Deaf = heard.UnixMilli(), now.Sub(heard) > h.o.Silence
	}
	return b
}

// events sends a beat and the model, and then what changes, until the reader or the server ends, or the reader is too slow.
func (h *Hub) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that gathers what it passes on would hold events back
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	wake, ok := h.join()
	if !ok {
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d are reading already, and no more may", h.o.Readers), http.StatusServiceUnavailable)
		return
	}
	defer h.leave(wake)
	w.Header().Set("Content-Type", "text/event-stream")
	err := h.stream(stream{to: http.NewResponseController(w), w: w}, wake, r.Context().Done())
	if err != nil {
		klog.FromContext(r.Context()).V(2).Info("A reader of the fleet page was cut off", "err", err)
	}
}

// stream sends to a reader until end, or until it can't be sent to.
func (h *Hub) stream(s stream, wake <-chan struct{}, end <-chan struct{}) error {
	beat := time.NewTicker(h.o.Beat)
	defer beat.Stop()
	err := s.beat(h, "retry: 3000\n")
	for held := (*version)(nil); err == nil; {
		due := false
		select {
		case <-end:
			return nil
		case <-wake:
		case <-beat.C:
			due = true
		}
		// To a reader who takes as long as a beat for each write, chance would bring beats alone, or news alone: what is due comes with the other.
		select {
		case <-beat.C:
			due = true
		default:
		}
		if due {
			err = s.beat(h, "")
		}
		if next := h.version(); err == nil && next != nil && next != held {
			err = s.bring(held, next)
			held = next
		}
	}
	return err
}

// A stream is a reader's.
type stream struct {
	to *http.ResponseController
	w  http.ResponseWriter
}

// beat sends the beat of now after other fields of its event.
func (s stream) beat(h *Hub, fields string) error {
	data, err := json.Marshal(h.beatAt(time.Now(), h.o.Source.Heard()))
	if err != nil {
		return err
	}
	return s.send(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", fields, eventBeat, data))
}

// bring sends what leads from one version to another.
func (s stream) bring(held, next *version) error {
	event, data, err := next.since(held)
	if err != nil {
		return err
	}
	return s.send(fmt.Sprintf("event: %s\nid: %d\ndata: %s\n\n", event, next.number, data)) // JSON has no line ends
}

// send writes within [WriteTime].
func (s stream) send(text string) error {
	if err := s.to.SetWriteDeadline(time.Now().Add(WriteTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.to.Flush()
}
