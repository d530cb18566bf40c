// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync"
)

type reporterFunc func(context.Context, configsync.Status) error

func (f reporterFunc) Report(ctx context.Context, s configsync.Status) error { return f(ctx, s) }

// TestJoinedTellsAllAndJoinsErrors shows that a failing or hanging reporter hides neither the report nor the errors of the others.
func TestJoinedTellsAllAndJoinsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, last := errors.New("first"), errors.New("last")
		var told configsync.Status
		r := configsync.Joined(
			reporterFunc(func(context.Context, configsync.Status) error { return first }),
			nil,
			reporterFunc(func(ctx context.Context, _ configsync.Status) error { <-ctx.Done(); return ctx.Err() }),
			reporterFunc(func(ctx context.Context, s configsync.Status) error {
				if ctx.Err() != nil {
					t.Error("a reporter was told after the one before it had used up the time")
				}
				told = s
				return last
			}),
		)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := r.Report(ctx, configsync.Status{Error: "x"})
		for _, want := range []error{first, context.DeadlineExceeded, last} {
			if !errors.Is(err, want) {
				t.Errorf("Report returned %v, want it to wrap %v", err, want)
			}
		}
		if told.Error != "x" {
			t.Errorf("the last reporter was told %+v, want the status as given", told)
		}
	})
}

// TestJoinedOfNothing shows that the absence of reporters is no error.
func TestJoinedOfNothing(t *testing.T) {
	if err := configsync.Joined(nil).Report(t.Context(), configsync.Status{}); err != nil {
		t.Errorf("Report returned %v, want nil", err)
	}
}
