// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/identity"
)

// TestRenewedLeaseIsNeverCollected simulates members with lost beats, stops of the watch and of the server, and clocks of any offset, and
// shows that no Lease is deleted that was written within GCAfter, and that the dead ones are in the end. R-ID-10, I4, I7.
func TestRenewedLeaseIsNeverCollected(t *testing.T) {
	const gcAfter = 3 * time.Minute
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			w, client, collector := collecting(t, []string{"dead"}, identity.CollectorConfig{GCAfter: gcAfter, Period: 5 * time.Second})
			wrote := map[string]time.Duration{}
			client.before = func(name string) error {
				if random.IntN(3) == 0 {
					w.beatOf(random, name, wrote)
				}
				at, ok := wrote[name]
				w.mu.Lock()
				seen := w.stored[name] != nil && w.shown[name] != nil && w.stored[name].ResourceVersion == w.shown[name].ResourceVersion
				w.mu.Unlock()
				if quiet := w.clock.Elapsed() - at; ok && quiet < gcAfter && seen && quiet > 0 {
					t.Errorf("seed %d: the collector deletes %s, which wrote %v ago", seed, name, quiet)
				}
				return nil
			}
			for range 600 {
				for i := range 8 {
					if name := fmt.Sprint("m", i); random.IntN(3+6*i) == 0 {
						w.beatOf(random, name, wrote)
					}
				}
				w.disturb(random)
				before := w.clock.Elapsed()
				if _, err := collector.Collect(t.Context()); err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("seed %d: %v", seed, err)
				}
				w.after(5*time.Second - (w.clock.Elapsed() - before))
			}
			w.set(func(h *hub) { h.down, client.before = false, nil })
			w.relist()
			w.after(2 * gcAfter)
			if _, err := collector.Collect(t.Context()); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			w.after(time.Second)
			w.wantStored(own)
			w.stop()
		})
	}
}

// beatOf renews with a time that is off by up to a year.
func (w *world) beatOf(random *rand.Rand, name string, wrote map[string]time.Duration) {
	off := time.Duration(random.Int64N(int64(2*365*24*time.Hour))) - 365*24*time.Hour
	if w.write(name, name, func(l *coordinationv1.Lease) { l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(off)} }) {
		wrote[name] = w.clock.Elapsed()
	}
}

// disturb stops and starts the watch and the server.
func (w *world) disturb(random *rand.Rand) {
	switch random.IntN(60) {
	case 0:
		w.set(cutWatch)
	case 1, 2, 3:
		w.relist()
	case 4:
		w.set(func(h *hub) { h.down = true })
	case 5, 6, 7:
		w.set(func(h *hub) { h.down = false })
	}
}
