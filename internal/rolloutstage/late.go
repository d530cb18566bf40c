// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstage

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// A draw is where delays come from: one sequence by one seed, whoever asks.
type draw struct {
	most time.Duration
	mu   sync.Mutex
	r    *rand.Rand
}

func newDraw(t Task) *draw { return &draw{most: t.Delay, r: rand.New(rand.NewPCG(t.Seed, 1))} } //nolint:gosec // it has to be replayed

// wait takes the next delay.
func (d *draw) wait(ctx context.Context) {
	if d.most <= 0 {
		return
	}
	d.mu.Lock()
	timer := time.NewTimer(time.Duration(d.r.Int64N(int64(d.most))))
	d.mu.Unlock()
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// A late transport sends each request late, and gives each answer and each piece of a watch late: what a controller decides on is old, and what
// it writes comes after what others have written meanwhile. Watches of different objects lose their order among each other; each keeps its own.
type late struct {
	d    *draw
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (l late) RoundTrip(r *http.Request) (*http.Response, error) {
	l.d.wait(r.Context())
	response, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = lateBody{response.Body, r.Context(), l.d}
	return response, nil
}

type lateBody struct {
	io.ReadCloser
	ctx context.Context //nolint:containedctx // that of the request whose answer it is
	d   *draw
}

// Read waits when it has something: a watch that is quiet must not be late by the sum of its silence.
func (b lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.d.wait(b.ctx)
	}
	return n, err
}
