// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"sync"
	"time"
)

// An ear is a transport that knows how far what the caches have may be relied on. An API server that answers is not enough: a cache whose
// watch has ended, and is refused since, stands still though everything else goes well. Nor are open watches enough: for as long as nothing comes, a
// connection may be dead. The zero value has heard nothing.
type ear struct {
	mu      sync.Mutex
	last    time.Time          // of an answer, or of a word of a watch
	watches map[string]*lapses // the newest of each kind of object
}

// lapses is when a watch ended, as long as there is none after it. Zero while it is open.
type lapses struct{ at time.Time }

// Heard is the last time at which the caches were known to have what there is: that of the last word from the API server, or of the end of the
// watch that is missing for longest. Zero before the first word.
func (e *ear) Heard() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.last
	for _, w := range e.watches {
		if !w.at.IsZero() && w.at.Before(at) {
			at = w.at
		}
	}
	return at
}

// wrap has the ear listen to what passes through a transport.
func (e *ear) wrap(next http.RoundTripper) http.RoundTripper { return listening{e, next} }

type listening struct {
	ear  *ear
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (l listening) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	code := 0
	if err == nil {
		code = response.StatusCode
	}
	if w := l.ear.answer(watched(r), code); w != nil {
		response.Body = &words{response.Body, l.ear, w}
	}
	return response, err
}

// answer notes one: of what is watched, if anything that the caches have is, and code 0 for none. It returns what is to be noted of the watch that has begun.
func (e *ear) answer(what string, code int) *lapses {
	e.mu.Lock()
	defer e.mu.Unlock()
	if tells(code) {
		e.last = time.Now()
	}
	if what == "" {
		return nil
	}
	if e.watches == nil {
		e.watches = map[string]*lapses{}
	}
	if code == http.StatusOK {
		e.watches[what] = &lapses{}
		return e.watches[what]
	}
	if e.watches[what] == nil {
		at := e.last
		if at.IsZero() { // it was refused before anything was answered
			at = time.Now()
		}
		e.watches[what] = &lapses{at: at}
	}
	return nil
}

// tells reports whether an answer is one that only an API server gives that works, to somebody whom it knows.
func tells(code int) bool {
	return code >= 200 && code < 300 || code == http.StatusNotFound || code == http.StatusConflict
}

// word notes that something has come of a watch, end that nothing will any more: what was heard until then is so.
func (e *ear) word() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = time.Now()
}

func (e *ear) end(w *lapses) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.at.IsZero() {
		w.at = e.last
	}
}

// words is the body of a watch.
type words struct {
	io.ReadCloser
	ear *ear
	of  *lapses
}

// Read implements io.Reader.
func (w *words) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 || errors.Is(err, io.EOF) { // an end that the API server has told is a word, too
		w.ear.word()
	}
	if err != nil {
		w.ear.end(w.of)
	}
	return n, err
}

// Close implements io.Closer.
func (w *words) Close() error {
	w.ear.end(w.of)
	return w.ReadCloser.Close()
}

// shown are the resources whose caches the fleet page shows. Each is watched for as long as the process lives: a watch that is given up would be missed
// for ever.
func shown() []string {
	return []string{"nodes", "pods", "poddisruptionbudgets", "nodeshadows", "rollouts", "revisions", "disruptionledgers"}
}

// watched is what of that a request watches, empty if none. Ledgers are watched one by one.
func watched(r *http.Request) string {
	q := r.URL.Query()
	if name := path.Base(r.URL.Path); slices.Contains(shown(), name) && (q.Get("watch") == "true" || q.Get("watch") == "1") {
		return name + "?" + q.Get("fieldSelector")
	}
	return ""
}

// Heard implements [page.Source].
func (p *Plane) Heard() time.Time { return p.heard.Heard() }

// Host is where the API server is, without scheme and path.
func (p *Plane) Host() string {
	if u, err := url.Parse(p.config.Host); err == nil && u.Host != "" {
		return u.Host
	}
	return p.config.Host
}
