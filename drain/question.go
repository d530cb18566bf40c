// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// askTime bounds each question to a function of the embedder, so that one that hangs keeps no other node waiting for long.
const askTime = holdEvery / 2

var errUnanswered = errors.New("the call of an earlier pass has not returned yet")

// A question is what a function of the embedder is asked about one Node for one holder.
type question struct {
	about, holder string
	node          types.UID
}

// ask calls a function of the embedder and waits for its answer, for [askTime] at most even where the function does not heed its context.
// One that does not return is not called again for that node and holder before it has, and what it says then counts no more.
func (g *registry) ask(ctx context.Context, q question, f func(context.Context) (bool, error)) (bool, error) {
	if !g.begins(q) {
		return false, errUnanswered
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	type answer struct {
		yes bool
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		yes, err := f(ctx)
		g.ends(q)
		answers <- answer{yes, err}
	}()
	select {
	case a := <-answers:
		return a.yes, a.err
	case <-ctx.Done():
		return false, fmt.Errorf("no answer: %w", ctx.Err())
	}
}

// begins reports whether the question may be asked now.
func (g *registry) begins(q question) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asked[q] {
		return false
	}
	g.asked[q] = true
	return true
}

func (g *registry) ends(q question) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.asked, q)
}
