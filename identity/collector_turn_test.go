// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/belayproject/belay/identity"
)

// TestRefusedLeasesStarveNobody has more Leases that can't be deleted than a pass deals with, all older than those that can. Each pass is for those
// whose turn was longest ago. R-ID-09.
func TestRefusedLeasesStarveNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client, collector := collecting(t, nil, identity.CollectorConfig{MaxPerPass: 2})
		defer w.stop()
		for _, name := range []string{"r1", "r2", "r3", "r4", "r5", "x", "y"} {
			w.write(name, name)
			w.after(time.Second)
		}
		client.before = func(name string) error {
			if name[0] == 'r' {
				return apierrors.NewForbidden(coordinationv1.Resource("leases"), name, errors.New("no"))
			}
			return nil
		}
		w.after(time.Hour + time.Second)
		for _, want := range []string{
			"r1:Refused r2:Refused left:5", "r3:Refused r4:Refused left:5", "r5:Refused x:Collected left:5", "y:Collected r1:Refused left:4",
			"r2:Refused r3:Refused left:3", "r4:Refused r5:Refused left:3", "r1:Refused r2:Refused left:3",
		} {
			if got := pass(t, collector); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		w.edit("r3") // another version is another one
		w.after(time.Hour + time.Second)
		if got, want := pass(t, collector), "r3:Refused r4:Refused left:3"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestBrokenLeaseStopsNoOtherForEver has the server fail on the oldest Lease each time: R-ID-09.
func TestBrokenLeaseStopsNoOtherForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client, collector := collecting(t, []string{"broken"}, identity.CollectorConfig{})
		defer w.stop()
		w.after(time.Second)
		w.write("a", "a")
		w.write("b", "b")
		broken := apierrors.NewInternalError(errors.New("webhook"))
		client.before = func(name string) error {
			if name == "broken" {
				return broken
			}
			return nil
		}
		w.after(time.Hour + time.Second)
		for i, want := range []string{"left:3", "a:Collected b:Collected left:1", "left:1"} {
			report, err := collector.Collect(t.Context())
			if got := short(report); got != want || !errors.Is(err, broken) {
				t.Errorf("pass %d: got %q and %v, want %q", i, got, err, want)
			}
		}
	})
}

// TestEpochAheadKeepsALease shows that a Lease is kept that alone knows how far the epochs of its name are, and takes no turn of another. I2.
func TestEpochAheadKeepsALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client, collector := collecting(t, nil, identity.CollectorConfig{MaxPerPass: 1})
		defer w.stop()
		with := func(epoch string) func(*coordinationv1.Lease) {
			return func(l *coordinationv1.Lease) { l.Annotations = map[string]string{identity.EpochAnnotation: epoch} }
		}
		w.write("ahead", "x", with("5000"))
		w.write("strange", "x", with("5"), func(l *coordinationv1.Lease) { l.ResourceVersion = "v1" })
		w.write("bare", "x", func(l *coordinationv1.Lease) { l.ResourceVersion = "v2" })
		w.write("behind", "x", with("1"))
		w.after(time.Hour + time.Second)
		for _, want := range []string{"bare:Collected left:1", "behind:Collected", ""} {
			report, err := collector.Collect(t.Context())
			if got := short(report); got != want || report.Kept != 2 || err != nil {
				t.Errorf("got %q, %d kept and %v, want %q and 2", got, report.Kept, err, want)
			}
		}
		if len(client.asked) != 2 {
			t.Errorf("%d deletions were asked for, want 2", len(client.asked))
		}
		w.wantStored("ahead", own, "strange")
	})
}

// TestFinalizerKeepsALease shows what becomes of a dead Lease with a finalizer: it is deleted once, comes to no life by that, and is not asked for
// again.
func TestFinalizerKeepsALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client, collector := collecting(t, []string{"kept"}, identity.CollectorConfig{})
		defer w.stop()
		w.write("kept", "kept", func(l *coordinationv1.Lease) { l.Finalizers = []string{"example.com/keep"} })
		w.after(time.Hour + time.Second)
		w.told()
		if got, want := pass(t, collector), "kept:Finalizing"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		w.after(2 * time.Hour)
		w.wantTold("the mark of its deletion is no life")
		w.wantState("kept", identity.Lost)
		if got := pass(t, collector); got != "" || len(client.asked) != 1 {
			t.Errorf("got %q after %d requests, want none but the first", got, len(client.asked))
		}
	})
}

// TestCollectorOfANewViewCountsAnew restarts the process of the collector 50 minutes after a death: what the view before it has seen counts for
// nothing. R-ID-12.
func TestCollectorOfANewViewCountsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client, _ := collecting(t, nil, identity.CollectorConfig{})
		w.write("dead", "dead")
		w.after(50 * time.Minute)
		w.wantState("dead", identity.Lost)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w.live(ctx, own, 0, beat)
		w.stop()
		next, err := identity.NewView(w.config)
		if err != nil {
			t.Fatal(err)
		}
		collector, err := identity.NewCollector(client, next, identity.CollectorConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- next.Run(ctx) }()
		for at := range 70 { // minutes since the restart
			w.after(time.Minute)
			if got := pass(t, collector); got != "" && at < 59 || got == "stale" {
				t.Errorf("%d minutes after the restart: %q", at+1, got)
			}
		}
		w.wantStored(own)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
