// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// A Syncer that New has not made answers with one error, and none of its calls hangs: in a bubble a hang is a failure.
func TestSyncerThatWasNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &configsync.Syncer[string]{}
		for call, f := range map[string]func() error{
			"Bootstrap": func() error { _, err := s.Bootstrap(t.Context(), lkg.Exit{}); return err },
			"Run":       func() error { return s.Run(t.Context()) },
			"Reconcile": func() error { _, err := s.Reconcile(t.Context(), "node-1"); return err },
			"Watch":     func() error { return s.Watch(t.Context(), func() {}) },
			"Forget":    func() error { return s.Forget(t.Context(), "uid") },
			"Reject":    func() error { return s.Reject(t.Context(), lkg.Ref{}, "reason") },
			"UseLocal":  func() error { return s.UseLocal(t.Context(), "reason") },
			"Stopping":  func() error { return s.Stopping(t.Context()) },
			"Announce":  func() error { return s.Announce(t.Context()) },
		} {
			if err := f(); !errors.Is(err, configsync.ErrNotMade) {
				t.Errorf("%s of a zero Syncer: %v, want ErrNotMade", call, err)
			}
		}
	})
}

// A second Run while the first one goes on is an error; a Run after its end is not.
func TestSyncerRunsTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := configsync.New(t.Context(), configsync.Options[string]{
			Version: "v1", Key: "config", Codec: configsync.YAML[string](configsync.YAMLOptions{}), Default: func() string { return "local" },
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Bootstrap(t.Context(), lkg.Exit{}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			ctx, stop := context.WithCancel(t.Context())
			first := make(chan error, 1)
			go func() { first <- s.Run(ctx) }()
			synctest.Wait()
			if err := s.Run(ctx); !errors.Is(err, configsync.ErrRunning) {
				t.Errorf("a second Run returned %v, want ErrRunning", err)
			}
			stop()
			if err := <-first; err != nil {
				t.Errorf("the first Run returned %v, want nil", err)
			}
		}
	})
}
