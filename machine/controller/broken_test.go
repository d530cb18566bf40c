// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// fragile breaks what becomes the image "bad".
type fragile struct{ cloud }

func (f fragile) Update(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
	p, err := f.cloud.Update(ctx, r)
	if strings.Contains(string(r.Desired.Config), "bad") && p.Done {
		f.Break(r.Ref.Token, "it has ended with status 1")
	}
	return p, err
}

func breakable(w *world) {
	w.options.Provider = fragile{cloud{w.cloud, w}}
	w.start()
}

func survey(w *world) {
	w.t.Helper()
	<-time.After(time.Minute)
	if _, err := w.ctl.Survey(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) image(key machine.Key, image string) {
	w.store.Edit(key, func(m *machine.Machine) { m.Spec.Config = []byte(`{"image":"` + image + `"}`) })
}

// R-MA-06: a change in place that has broken its instance is taken back by an edit, in place, whether it was to be verified still or had been given up; the instance
// has to run for that. Until then the machine has failed, and says why.
func TestBrokenByAnUpdateIsEditedBack(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": 0, "after it was given up": time.Hour} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				breakable(w)
				m := w.store.Put(worker("a"))
				w.running(m.Key)
				w.image(m.Key, "bad")
				for w.live(m.Key).Step.Name != machine.StepVerifying {
					<-time.After(min(max(w.pass(m.Key), time.Second), time.Minute))
				}
				survey(w)
				w.until(m.Key, "broken", func(m machine.Machine, _ bool) bool { return m.Phase == machine.PhaseFailed })
				if f := w.live(m.Key).Failure; f.Reason != machine.ReasonInstanceBroken || !strings.Contains(f.Message, "ended with status 1") {
					t.Errorf("R-MA-06: failure %+v", f)
				}
				for begun := time.Now(); time.Since(begun) < wait; {
					<-time.After(min(max(w.pass(m.Key), time.Second), time.Minute))
				}
				if at := w.live(m.Key); at.Phase != machine.PhaseFailed || at.Update == nil {
					t.Fatalf("R-MA-06: phase %s, update %+v: the instance does not run", at.Phase, at.Update)
				}
				w.image(m.Key, "a")
				if at, _ := w.running(m.Key); at.Incarnation != 1 || at.Failure != nil || at.Instance.State != provider.Running {
					t.Errorf("R-MA-06: incarnation %d, failure %+v, instance %+v", at.Incarnation, at.Failure, at.Instance)
				}
				w.store.Delete(m.Key)
				w.gone(m.Key)
				w.clean()
			})
		})
	}
}

// R-MA-06: an instance that has broken by itself is changed when its spec is, and not before.
func TestBrokenIsUpdated(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		breakable(w)
		m := w.store.Put(worker("a"))
		at, _ := w.running(m.Key)
		w.cloud.Break(at.Token, "it has ended with status 1")
		survey(w)
		w.until(m.Key, "broken", func(m machine.Machine, _ bool) bool { return m.Phase == machine.PhaseFailed })
		before := w.cloud.Calls()["Update"]
		for range 20 {
			<-time.After(max(w.pass(m.Key), time.Minute))
		}
		if n := w.cloud.Calls()["Update"] - before; n != 0 || w.live(m.Key).Failure.Reason != machine.ReasonInstanceBroken {
			t.Errorf("R-MA-06: it was updated %d times, failure %+v", n, w.live(m.Key).Failure)
		}
		w.image(m.Key, "b")
		if at, _ := w.running(m.Key); at.Incarnation != 1 || at.Failure != nil {
			t.Errorf("R-MA-06: incarnation %d, failure %+v", at.Incarnation, at.Failure)
		}
	})
}
