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

// told is a budget that is told of failures.
type told struct {
	*budget
	failures []string
	critical bool
}

func (b *told) Fail(_ context.Context, name, uid, reason string, critical bool) error {
	if _, has := b.held[uid]; !has {
		reason = "without a slot: " + reason
	}
	b.failures, b.critical = append(b.failures, name+" "+reason), critical
	return nil
}

// R-MA-29: what was broken before a change was planned is not told as a failure of the change.
func TestBrokenBeforeTheUpdateIsNotBlamed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b := &told{budget: w.budget}
		w.options.Budget = b
		breakable(w)
		w.start()
		m := w.store.Put(worker("a"))
		at, _ := w.running(m.Key)
		w.cloud.Break(at.Token, "it has ended with status 1")
		survey(w)
		w.until(m.Key, "broken", func(m machine.Machine, _ bool) bool { return m.Phase == machine.PhaseFailed })
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Config = []byte(`{"image":"b"}`) })
		w.until(m.Key, "mended", func(m machine.Machine, _ bool) bool { return m.Update == nil && m.Phase == machine.PhaseRunning })
		if len(b.failures) > 0 {
			t.Errorf("R-MA-29: the change has mended it, and it was told %q", b.failures)
		}
	})
}

// R-MA-29: a machine whose update fails is told to whoever shares the budget, once for each failure, also after the controller was killed, and with what it is.
func TestFailedUpdateIsToldToTheBudget(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b := &told{budget: w.budget}
		w.options.Budget = b
		w.start()
		m := worker("a")
		m.Spec.Roles = []string{"control-plane"}
		w.store.Put(m)
		w.running(m.Key)
		if len(b.failures) > 0 {
			t.Errorf("nothing has failed, and it was told %q", b.failures)
		}
		w.nodes.Version = func(provider.Instance) provider.Versions { return provider.Versions{Kubelet: "v1.36.1"} }
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.2" })
		w.until(m.Key, "failed", func(m machine.Machine, _ bool) bool { return m.Phase == machine.PhaseFailed })
		for range 5 {
			w.pass(m.Key)
			<-time.After(time.Minute)
		}
		if len(b.failures) != 1 || !strings.HasPrefix(b.failures[0], "fleet/a UpdateTimeout: ") || !b.critical {
			t.Errorf("R-MA-29: it was told %q, critical %t", b.failures, b.critical)
		}
		w.start() // another process can't know that it was told
		w.pass(m.Key)
		if len(b.failures) != 2 {
			t.Errorf("R-MA-29: another process has told it %d times", len(b.failures)-1)
		}
	})
}
