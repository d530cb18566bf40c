// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// slowDisk is a disk on which every write takes a second, as on a loaded machine. before is called as a write begins.
type slowDisk struct {
	configsync.Store
	before func(stream string)
}

func (d slowDisk) Put(ctx context.Context, stream string, payload []byte) error {
	d.before(stream)
	<-time.After(time.Second)
	return d.Store.Put(ctx, stream, payload)
}

// A child that starts by itself while the restart for a new config is being decided already runs that config: to
// restart it again would end what has just begun, and its next start might find the source in another state.
func TestStartBetweenTheDecisionAndTheRestart(t *testing.T) {
	eachDriver(t, func(t *testing.T, drive driver) {
		n := newNode(t)
		var s *configsync.Syncer[string]
		var asked atomic.Int32
		var crash sync.Once
		started := make(chan configsync.Active[string], 1)
		o := n.options()
		o.Restarter = restarterFunc(func(context.Context, configsync.Change) error {
			asked.Add(1)
			return nil
		})
		o.Store = slowDisk{n.disk, func(stream string) {
			if stream != "current" {
				return
			}
			crash.Do(func() { // its record waits for the one that is being written, and comes before the marker
				go func() {
					a, err := s.Bootstrap(t.Context(), lkg.Exit{})
					if err != nil {
						t.Errorf("Bootstrap: %v", err)
					}
					started <- a
				}()
			})
		}}
		s, err := configsync.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Bootstrap(t.Context(), lkg.Exit{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- drive(ctx, s) }()
		v1 := n.push("v1", "good-1")
		if a := <-started; a.Ref.UID != v1.UID {
			t.Errorf("the start uses UID %q, want %q: it was assigned by then", a.Ref.UID, v1.UID)
		}
		n.wait(5 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if got := asked.Load(); got != 0 {
			t.Errorf("%d restarts were asked for, want none: what runs since the start is what is wanted", got)
		}
	})
}
