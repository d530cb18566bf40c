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
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/lkg"
)

// since returns the reports that came after the first n.
func (n *node) since(i int) []configsync.Status { return n.rec.All()[i:] }

// R-CS-61, R-CS-71: an adoption is one report, before the config is used, that has all the news: also that the source
// is clear again, and which generation was acted upon.
func TestAdoptionIsOneReport(t *testing.T) {
	for i, trouble := range []error{nil, errors.New("503"), nil, errors.New("503")} {
		synctest.Test(t, func(t *testing.T) {
			n := newNode(t)
			n.tune = func(o *configsync.Options[string]) {
				if i >= 2 {
					o.Restarter = late{n.child}
				}
			}
			n.start()
			defer func() { n.stop() }()
			n.promoted()
			if trouble != nil {
				n.server.Spoil(trouble)
				n.wait(time.Second)
			}
			o := n.server.Put("kube-system", "v2", map[string]string{"kubelet": "good-2"}, true)
			n.wait(time.Second) // the new object is news of its own: what was reported is compared with the world
			before := len(n.rec.All())
			n.server.Name(&configsync.Spec{Namespace: o.Namespace, Name: o.Name, UID: o.UID, Generation: 7})
			n.wait(20 * time.Second)
			got := n.since(before)
			if len(got) != 1 {
				t.Fatalf("after %v: %d reports of an adoption, want one: %+v", trouble, len(got), got)
			}
			if s := got[0]; s.Active.UID != o.UID || s.Assigned.UID != o.UID || s.ObservedGeneration != 7 || s.Error != "" || s.Condition.Status != lkg.StatusTrue {
				t.Errorf("after %v: the report is %+v, want that %s of generation 7 is active", trouble, s, o.UID)
			}
		})
	}
}

// late is a Restarter whose child has been started again when it returns.
type late struct {
	*configsynctest.Child[string]
}

// Restart implements configsync.Restarter.
func (l late) Restart(ctx context.Context, c configsync.Change) error {
	err := l.Child.Restart(ctx, c)
	select {
	case <-ctx.Done():
	case <-time.After(2 * time.Second):
	}
	return err
}

// A restart that lasts is reported while it does: what is assigned is not active yet.
func TestLastingRestartIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.tune = func(*configsync.Options[string]) { n.child.Delay = 20 * time.Second }
		n.start()
		defer func() { n.stop() }()
		v1 := n.promoted()
		v2 := n.server.Put("kube-system", "v2", map[string]string{"kubelet": "good-2"}, true)
		// A new object is news of its own; and without the seconds the start falls in with a round of probes, which may come
		// before the child is up.
		n.wait(3 * time.Second)
		before := len(n.rec.All())
		n.server.Name(&configsync.Spec{Namespace: v2.Namespace, Name: v2.Name, UID: v2.UID})
		for _, c := range []struct {
			at      time.Duration
			reports int
			active  string
		}{
			{4 * time.Second, 0, ""}, {2 * time.Second, 1, v1.UID}, {12 * time.Second, 1, v1.UID}, {6 * time.Second, 2, v2.UID},
		} {
			n.wait(c.at)
			got := n.since(before)
			if len(got) != c.reports || c.reports > 0 && (got[c.reports-1].Active.UID != c.active || got[c.reports-1].Assigned.UID != v2.UID) {
				t.Errorf("%v later there are the reports %+v, want %d, the last with %q active and %q assigned", c.at, got, c.reports, c.active, v2.UID)
			}
		}
	})
}

// C-17: what was reported is compared with the world again when the source stirs and after Resync.
func TestReportsAreComparedWhenTheSourceStirs(t *testing.T) {
	onNode(t, func(n *node) {
		o := n.promoted()
		looks := func(what string, f func(), want bool) {
			t.Helper()
			n.wait(30 * time.Second)
			before := len(n.rec.All())
			f()
			if got := len(n.rec.All()) > before; got != want {
				t.Errorf("%s: reported again %t, want %t", what, got, want)
			}
		}
		looks("the source was named again", func() {
			n.server.Name(&configsync.Spec{Namespace: o.Namespace, Name: o.Name, UID: o.UID})
			n.wait(time.Second)
		}, true)
		looks("Resync", func() { n.wait(15 * time.Minute) }, true)
	})
}
