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

// TestJoinedTellsAllAndJoinsErrors shows that a failing or hanging reporter hides neither the report nor the errors
// of the others.
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

// TestFirstIsToldFirst shows that the others are told when the first has returned, whatever it says, or a second
// later if it hangs.
func TestFirstIsToldFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed, last := errors.New("failed"), errors.New("last")
		for _, c := range []struct {
			takes, want time.Duration
			err         error
		}{{0, 0, nil}, {300 * time.Millisecond, 300 * time.Millisecond, failed}, {time.Minute, time.Second, context.DeadlineExceeded}} {
			from := time.Now()
			var told time.Duration
			r := configsync.First(
				reporterFunc(func(ctx context.Context, _ configsync.Status) error {
					select {
					case <-time.After(c.takes):
						return c.err
					case <-ctx.Done():
						return ctx.Err()
					}
				}),
				nil,
				reporterFunc(func(_ context.Context, s configsync.Status) error {
					if told = time.Since(from); s.Error != "x" {
						t.Errorf("the other was told %+v, want the status as given", s)
					}
					return last
				}),
			)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			err := r.Report(ctx, configsync.Status{Error: "x"})
			cancel()
			if told != c.want || !errors.Is(err, last) || !errors.Is(err, c.err) && c.err != nil {
				t.Errorf("the first took %v: the other was told after %v, want %v; Report returned %v, want %v and %v", c.takes, told, c.want, err, c.err, last)
			}
		}
	})
}

// TestFirstOfNothing shows that the absence of reporters is no error.
func TestFirstOfNothing(t *testing.T) {
	told := 0
	count := reporterFunc(func(context.Context, configsync.Status) error { told++; return nil })
	for _, r := range []configsync.Reporter{configsync.First(nil), configsync.First(nil, count), configsync.First(count), configsync.First(count, nil)} {
		if err := r.Report(t.Context(), configsync.Status{}); err != nil {
			t.Errorf("Report returned %v, want nil", err)
		}
	}
	if told != 3 {
		t.Errorf("reporters were told %d times, want 3", told)
	}
}
