// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestEndOfWork has errors with which work ends when its context does, and others, which must not be lost.
func TestEndOfWork(t *testing.T) {
	boom := errors.New("boom")
	late, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()
	caused, end := context.WithCancelCause(t.Context())
	end(boom)
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{
		{t.Context(), context.Canceled, false},
		{late, context.DeadlineExceeded, true},
		{late, fmt.Errorf("working: %w", context.DeadlineExceeded), true},
		{late, boom, false},
		{late, errors.Join(context.DeadlineExceeded, boom), false},
		{caused, boom, true},
		{caused, context.Canceled, true},
		{caused, nil, false},
	} {
		if got := isEndOf(c.ctx, c.err); got != c.want {
			t.Errorf("%v of a context that has ended with %v: got %t, want %t", c.err, context.Cause(c.ctx), got, c.want)
		}
	}
}
