// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/provider"
)

// patient is a provider that says when to ask again, and keeps when it was asked.
type patient struct {
	cloud
	after int64
	asked *map[string][]time.Time
}

func (p patient) progress(call string, of func() (provider.Progress, error)) (provider.Progress, error) {
	(*p.asked)[call] = append((*p.asked)[call], time.Now())
	got, err := of()
	if !got.Done {
		got.AfterSeconds = p.after
	}
	return got, err
}

func (p patient) Update(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
	return p.progress("Update", func() (provider.Progress, error) { return p.cloud.Update(ctx, r) })
}

func (p patient) Stop(ctx context.Context, r provider.Ref) (provider.Progress, error) {
	return p.progress("Stop", func() (provider.Progress, error) { return p.cloud.Stop(ctx, r) })
}

func (p patient) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	return p.progress("Delete", func() (provider.Progress, error) { return p.cloud.Delete(ctx, r) })
}

// gaps are the times between the calls of a kind.
func (p patient) gaps(call string) (gaps []time.Duration) {
	for i, at := range (*p.asked)[call] {
		if i > 0 {
			gaps = append(gaps, at.Sub((*p.asked)[call][i-1]))
		}
	}
	return gaps
}

// tick reconciles when the machine asks for it, and once a second besides, as when others change: until that is so, or an hour is over.
func tick(w *world, key machine.Key, so func() bool) {
	w.t.Helper()
	for begun := time.Now(); !so(); {
		if time.Since(begun) > time.Hour {
			w.t.Fatalf("after an hour: last calls %v", w.trace[max(0, len(w.trace)-10):])
		}
		<-time.After(min(max(w.pass(key), time.Millisecond), time.Second))
	}
}

// R-MA-30: a provider is asked for what it goes on with when it has said so: not before, whatever else happens, and not later, and after
// five minutes whatever it says.
func TestProviderSaysWhenToAsk(t *testing.T) {
	for _, c := range []struct {
		says int64
		want time.Duration
	}{{1, time.Second}, {90, 90 * time.Second}, {1 << 40, 5 * time.Minute}} {
		t.Run(c.want.String(), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				p := patient{cloud{w.cloud, w}, c.says, &map[string][]time.Time{}}
				w.options.Provider = p
				w.start()
				m := w.store.Put(worker("a"))
				w.running(m.Key)
				w.image(m.Key, "b")
				tick(w, m.Key, func() bool { at := w.live(m.Key); return at.Update == nil && at.Digest == at.Spec.Digest() })
				w.store.Delete(m.Key)
				tick(w, m.Key, func() bool { _, err := w.store.Live(t.Context(), m.Key); return isGone(err) })
				for _, call := range []string{"Update", "Stop"} {
					gaps := p.gaps(call)
					if len(gaps) == 0 || slices.ContainsFunc(gaps, func(g time.Duration) bool { return g < c.want || g > c.want+time.Millisecond }) {
						t.Errorf("R-MA-30: between calls of %s there were %v, want %v", call, gaps, c.want)
					}
				}
			})
		})
	}
}

// R-MA-30: who wants something else, or another try, need not wait for what the provider has said of the last.
func TestAnotherDesireEndsTheWait(t *testing.T) {
	for name, change := range map[string]func(*machine.Machine){
		"another desire": func(m *machine.Machine) { m.Spec.Config = []byte(`{"image":"c"}`) },
		"another try":    func(m *machine.Machine) { m.Annotations = map[string]string{machine.RetryAnnotation: "1"} },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				p := patient{cloud{w.cloud, w}, 200, &map[string][]time.Time{}}
				w.options.Provider = p
				w.start()
				m := w.store.Put(worker("a"))
				w.running(m.Key)
				w.image(m.Key, "b")
				tick(w, m.Key, func() bool { return len((*p.asked)["Update"]) == 1 })
				w.store.Edit(m.Key, change)
				tick(w, m.Key, func() bool { return len((*p.asked)["Update"]) == 2 })
				if gap := p.gaps("Update")[0]; gap > 5*time.Second {
					t.Errorf("R-MA-30: the provider was asked after %v", gap)
				}
			})
		})
	}
}

// lives counts how often a machine is read past the cache.
type lives struct {
	*controllertest.Store
	n int
}

func (l *lives) Live(ctx context.Context, key machine.Key) (machine.Machine, error) {
	l.n++
	return l.Store.Live(ctx, key)
}

// R-MA-30: while an instance starts, a look at it is one call of the provider: its machine is read past the cache only before something is done. A start that
// may have been cut off is asked for again, and less often than it is looked at.
func TestLooksGoByTheCache(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const polls = 40
		w.cloud.Polls = polls
		store := &lives{Store: w.store}
		w.options.Machines = store
		w.start()
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		calls := w.cloud.Calls()
		if looks, makes := calls["Get"], calls["Create"]; looks+makes < polls || makes > 10 || store.n > makes+2 {
			t.Errorf("R-MA-30: %d looks at the instance, asked for %d times, and %d reads of the machine past the cache: want %d in all, 10 of them to ask for it, and 2 reads more than that",
				looks, makes, store.n, polls)
		}
	})
}
