// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"net/http"
	"regexp"
	"sync/atomic"
	"time"
)

// A line is the way to the page, in which much can go wrong.
type line struct {
	to http.Handler
	// cut has nothing come through, frozen neither what is sent nor that it does not come, mute no story be told; other has the page be one of another build.
	cut, frozen, mute, other atomic.Bool
	listen                   atomic.Int64 // how many streams are open
}

// ServeHTTP implements http.Handler.
func (l *line) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case l.cut.Load():
		panic(http.ErrAbortHandler)
	case r.URL.Path == "/node" && l.mute.Load():
		<-r.Context().Done()
	case r.URL.Path == "/events":
		l.listen.Add(1)
		defer l.listen.Add(-1)
		w = &lossy{w, l}
	}
	l.to.ServeHTTP(w, r)
}

// lossy is the end of a line.
type lossy struct {
	http.ResponseWriter
	line *line
}

// Unwrap is for http.ResponseController.
func (l *lossy) Unwrap() http.ResponseWriter { return l.ResponseWriter }

var build = regexp.MustCompile(`"build":"[0-9a-f]+"`)

// Write implements io.Writer.
func (l *lossy) Write(p []byte) (int, error) {
	if l.line.frozen.Load() {
		return len(p), nil
	}
	text := p
	if l.line.other.Load() {
		text = build.ReplaceAll(bytes.Clone(p), []byte(`"build":"another"`))
	}
	if _, err := l.ResponseWriter.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// cut has the controller be gone; mend has it be there again.
func (b *bed) cut() {
	b.t.Helper()
	b.line.cut.Store(true)
	b.server.CloseClientConnections()
	b.becomes(linkIs("lost"))
}

func (b *bed) mend() {
	b.t.Helper()
	b.line.cut.Store(false)
	b.becomes(linkIs("live"))
}

// listens waits until so many streams are open.
func (b *bed) listens(want int64) {
	b.t.Helper()
	deadline := time.After(patience)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for b.line.listen.Load() != want {
		select {
		case <-deadline:
			b.t.Fatalf("%d streams are open, want %d", b.line.listen.Load(), want)
		case <-look.C:
		}
	}
}

// unheard has a node run a revision while nobody hears of it.
func (b *bed) unheard(node int, revision string) {
	b.fleet.Runs(node, revision)
	b.wakes()
}

// linkIs: the page says that of its link.
func linkIs(state string) string {
	return `document.getElementById("link").dataset.link === "` + state + `"`
}
