// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

// newTracker is a tracker on an empty store.
func newTracker(t *testing.T) *lkg.Tracker {
	t.Helper()
	tr, err := lkg.NewTracker(t.Context(), lkgtest.NewStore(), lkg.Options{Version: "v1.0.0", BootID: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func begin(t *testing.T, tr *lkg.Tracker, between func(context.Context) error) lkg.Verdict {
	t.Helper()
	if err := tr.Start(t.Context(), lkg.Exit{}); err != nil {
		t.Fatal(err)
	}
	if between != nil {
		if err := between(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	v, err := tr.Decide(t.Context(), nil, func(lkg.Ref) lkg.Check { return lkg.Check{Outcome: lkg.CheckOK} })
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// promotes fails the test unless health makes what runs the last known good config.
func promotes(t *testing.T, tr *lkg.Tracker, r lkg.Ref) {
	t.Helper()
	for range 20 {
		if _, err := tr.Healthy(t.Context(), lkg.Health{Elapsed: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	if got := tr.State().LastKnownGood; !got.Same(r) {
		t.Errorf("the last known good config is %+v after 20 healthy minutes, want %+v", got, r)
	}
}

// TestAssignmentBetweenStartAndChoice: a start runs what is assigned when it chooses, and its health counts for that.
func TestAssignmentBetweenStartAndChoice(t *testing.T) {
	tr := newTracker(t)
	v := begin(t, tr, func(ctx context.Context) error { return tr.Assign(ctx, named("a")) })
	if !v.Use.Same(named("a")) || !v.OnTrial {
		t.Fatalf("the start uses %+v, want a on trial", v.Use)
	}
	promotes(t, tr, named("a"))
}

// TestForgetLeavesARunningTrialAlone: neither another version of the object that runs, nor taking back a rejection
// before anything came of it, ends the trial.
func TestForgetLeavesARunningTrialAlone(t *testing.T) {
	edited := named("a")
	edited.Digest = "sha256:edited"
	for name, rejected := range map[string]lkg.Ref{"another version": edited, "the running one": named("a")} {
		t.Run(name, func(t *testing.T) {
			tr := newTracker(t)
			if err := tr.Assign(t.Context(), named("a")); err != nil {
				t.Fatal(err)
			}
			begin(t, tr, nil)
			if err := tr.Reject(t.Context(), rejected, "by hand"); err != nil {
				t.Fatal(err)
			}
			if err := tr.Forget(t.Context(), named("a").UID); err != nil {
				t.Fatal(err)
			}
			promotes(t, tr, named("a"))
			if err := tr.Forget(t.Context(), named("a").UID); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Forget with nothing listed = %v, want fs.ErrNotExist", err)
			}
		})
	}
}
