// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/ptr"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/identity"
)

// leasesOf is the hub as a client of Leases. A collector deletes, and does nothing else: the other verbs are nil.
type leasesOf struct {
	identity.LeaseClient
	*hub
	before func(name string) error // called before each deletion
	asked  []metav1.DeleteOptions
}

func (l *leasesOf) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	l.mu.Lock()
	l.asked = append(l.asked, o)
	before := l.before
	l.mu.Unlock()
	if before != nil {
		if err := before(name); err != nil {
			return err
		}
	}
	return l.hub.Delete(ctx, name, o)
}

// collecting is a world with a collector for its view.
func collecting(t *testing.T, initial []string, config identity.CollectorConfig) (*world, *leasesOf, *identity.Collector) {
	t.Helper()
	w := newWorld(t, initial)
	client := &leasesOf{hub: w.hub}
	collector, err := identity.NewCollector(client, w.view, config)
	if err != nil {
		t.Fatal(err)
	}
	return w, client, collector
}

// pass makes one pass and returns its report in short.
func pass(t *testing.T, collector *identity.Collector) string {
	t.Helper()
	report, err := collector.Collect(t.Context())
	if err != nil {
		t.Errorf("collecting: %v", err)
	}
	return short(report)
}

func short(report identity.Report) string {
	var words []string
	for _, l := range report.Leases {
		words = append(words, fmt.Sprint(l.Key.Name, ":", l.Outcome))
	}
	if report.Left > 0 {
		words = append(words, fmt.Sprint("left:", report.Left))
	}
	if report.Stale {
		words = append(words, "stale")
	}
	return strings.Join(words, " ")
}

func (w *world) wantStored(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []string
	for name := range w.stored {
		got = append(got, name)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.t.Errorf("stored are %q, want %q", got, want)
	}
}

// TestCollectorDeletesWhatIsGone lets Leases of all kinds lie for an hour: dead ones, empty ones, such without a time or a duration or with
// bad ones, and those of a version that was switched off. R-ID-09, R-ID-14.
func TestCollectorDeletesWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client, collector := collecting(t, []string{"old", "empty="}, identity.CollectorConfig{})
		defer w.stop()
		w.live(w.ctx, "living", 0, beat)
		w.write("negative", "x", func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To(int32(-5)) })
		w.write("future", "x", func(l *coordinationv1.Lease) {
			l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(1e6 * time.Hour)}
		})
		w.after(59 * time.Minute)
		w.write("late", "late")
		if got := pass(t, collector); got != "" {
			t.Errorf("before an hour: got %q, want nothing", got)
		}
		w.after(time.Minute + time.Second)
		want := "empty:Collected future:Collected negative:Collected old:Collected"
		if got := pass(t, collector); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		w.after(time.Second)
		w.wantStored("late", "living", own)
		for _, o := range client.asked {
			if p := o.Preconditions; p == nil || p.UID == nil || p.ResourceVersion == nil {
				t.Errorf("a deletion has the preconditions %v, want UID and resourceVersion", p)
			}
		}
		if got := pass(t, collector); got != "" {
			t.Errorf("a second time: got %q, want nothing", got)
		}
	})
}

// TestCollectorLeavesWhatChanges has each Lease change between the decision and the deletion. R-ID-10, I7.
func TestCollectorLeavesWhatChanges(t *testing.T) {
	forbidden := apierrors.NewForbidden(coordinationv1.Resource("leases"), "forbidden", errors.New("no"))
	synctest.Test(t, func(t *testing.T) {
		var told []string
		w, client, collector := collecting(t, []string{"forbidden", "gone", "new", "renewed"}, identity.CollectorConfig{
			Metrics: identity.CollectorMetrics{Collected: func(o identity.CollectOutcome) { told = append(told, string(o)) }},
		})
		defer w.stop()
		w.after(time.Hour + time.Second)
		client.before = func(name string) error {
			switch name {
			case "renewed":
				w.renew(name)
			case "gone":
				w.remove(name)
			case "new":
				w.remove(name)
				w.write(name, name)
			default:
				return forbidden
			}
			return nil
		}
		report, err := collector.Collect(t.Context())
		if got, want := short(report), "forbidden:Refused gone:Gone new:Renewed renewed:Renewed"; got != want || err != nil {
			t.Errorf("got %q and %v, want %q", got, err, want)
		}
		if first := report.Leases[0]; !apierrors.IsForbidden(first.Err) || first.Quiet < time.Hour || first.UID == "" || first.Holder != "forbidden" {
			t.Errorf("got %+v, want the refusal, and whose Lease it was", first)
		}
		if want := []string{"Refused", "Gone", "Renewed", "Renewed"}; !slices.Equal(told, want) {
			t.Errorf("the metric was told %q, want %q", told, want)
		}
		w.wantStored("forbidden", own, "new", "renewed")
	})
}

// TestCollectorWaitsInDoubt shows that it deletes nothing where the view may be wrong, and goes on where it is not. R-ID-12.
func TestCollectorWaitsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client, collector := collecting(t, []string{"a", "b", "c"}, identity.CollectorConfig{})
		defer w.stop()
		w.after(30 * time.Minute)
		w.set(cutWatch)
		w.after(2 * time.Hour)
		if got := pass(t, collector); got != "stale" {
			t.Errorf("blind: got %q, want nothing done", got)
		}
		w.relist()
		w.after(20 * time.Minute)
		if got := pass(t, collector); got != "" {
			t.Errorf("the hours in which the view was blind counted: %q", got)
		}
		w.after(11 * time.Minute)
		client.before = func(string) error { w.set(cutWatch); w.after(time.Minute); return nil }
		if got := pass(t, collector); got != "a:Collected left:2" {
			t.Errorf("blind in the midst: got %q, want it to stop there", got)
		}
	})
}

// TestCollectorWaitsForTheBrake shows the same while too many are quiet. R-ID-12.
func TestCollectorWaitsForTheBrake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, collector := collecting(t, []string{"dead"}, identity.CollectorConfig{})
		defer w.stop()
		w.after(time.Hour)
		w.write("a", "a")
		w.write("b", "b")
		w.after(55 * time.Second)
		if got := pass(t, collector); got != "stale" || w.view.Freshness().Held != 2 {
			t.Errorf("got %q with %d held, want nothing done", got, w.view.Freshness().Held)
		}
		w.after(5 * time.Minute)
		if got := pass(t, collector); got != "dead:Collected" {
			t.Errorf("got %q, want the one that is due", got)
		}
	})
}

// TestCollectorStaysAtHome shows that it deletes neither its own Lease nor one of another namespace, whatever the view has seen. R-ID-11.
func TestCollectorStaysAtHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client, collector := collecting(t, nil, identity.CollectorConfig{})
		defer w.stop()
		w.write("abroad", "x", func(l *coordinationv1.Lease) { l.Namespace = "other" })
		w.write("home", "x")
		w.after(2 * time.Hour)
		if got := pass(t, collector); got != "home:Collected" || len(client.asked) != 1 {
			t.Errorf("got %q, want the one at home alone", got)
		}
	})
}

// TestCollectorWorksInPortions shows MaxPerPass and its order, and a dry run.
func TestCollectorWorksInPortions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client, collector := collecting(t, nil, identity.CollectorConfig{MaxPerPass: 2})
		defer w.stop()
		dry, err := identity.NewCollector(client, w.view, identity.CollectorConfig{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"z", "y", "x"} {
			w.write(name, name)
			w.after(time.Second)
		}
		w.after(2 * time.Hour)
		if got, want := pass(t, dry), "z:WouldCollect y:WouldCollect x:WouldCollect"; got != want || len(client.asked) != 0 {
			t.Errorf("dry: got %q and %d requests, want %q and none", got, len(client.asked), want)
		}
		for _, want := range []string{"z:Collected y:Collected left:1", "x:Collected", ""} {
			if got := pass(t, collector); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

// TestCollectorStopsAtASickServer shows that a pass does not press a server that does not answer or can't.
func TestCollectorStopsAtASickServer(t *testing.T) {
	for name, answer := range map[string]error{
		"no answer":    context.DeadlineExceeded,
		"overloaded":   apierrors.NewTooManyRequests("later", 1),
		"broken":       apierrors.NewInternalError(errors.New("etcd")),
		"unauthorized": apierrors.NewUnauthorized("who"),
	} {
		synctest.Test(t, func(t *testing.T) {
			w, client, collector := collecting(t, []string{"a", "b"}, identity.CollectorConfig{})
			defer w.stop()
			w.after(time.Hour + time.Second)
			client.before = func(string) error { return answer }
			report, err := collector.Collect(t.Context())
			if !errors.Is(err, answer) || len(client.asked) != 1 || len(report.Leases) != 0 || report.Left != 2 {
				t.Errorf("%s: got %v, %+v after %d requests, want the error after one", name, err, report, len(client.asked))
			}
		})
	}
}

// TestCollectorSaysHowItIs walks the health of Run. R-ID-17.
func TestCollectorSaysHowItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client, collector := collecting(t, []string{"a"}, identity.CollectorConfig{GCAfter: 10 * time.Minute})
		defer w.stop()
		healthy := func(when, want string) {
			t.Helper()
			if err := collector.Healthy(); fmt.Sprint(err) != want && (want == "<nil>" || err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: got %v, want %q", when, err, want)
			}
		}
		healthy("before Run", "it does not run")
		ctx, cancel := newContext(t)
		ended := make(chan error, 1)
		go func() { ended <- collector.Run(ctx) }()
		synctest.Wait()
		if err := collector.Run(t.Context()); !errors.Is(err, identity.ErrRunning) {
			t.Errorf("a second Run: got %v, want ErrRunning", err)
		}
		w.set(func(*hub) { client.before = func(string) error { return context.DeadlineExceeded } })
		w.after(9*time.Minute + 30*time.Second)
		healthy("nothing to do", "<nil>")
		w.after(time.Minute) // the last good pass was at 9 minutes
		healthy("one bad pass", "<nil>")
		w.after(2 * time.Minute)
		healthy("bad passes", "no pass was good for")
		w.set(func(*hub) { client.before = nil })
		w.after(time.Minute)
		healthy("good again", "<nil>")
		w.wantStored(own)
		w.set(func(*hub) { client.before = func(string) error { <-ctx.Done(); return ctx.Err() } })
		w.write("b", "b")
		w.after(14 * time.Minute)
		healthy("a pass that hangs", "no pass has ended for")
		cancel()
		synctest.Wait()
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v, want nil", err)
		}
		healthy("after Run", "it does not run")
	})
}

// TestCollectorConfigIsChecked names each wrong field.
func TestCollectorConfigIsChecked(t *testing.T) {
	h := newHub()
	view, err := identity.NewView(identity.ViewConfig{Source: h, Canary: h, Liveness: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	client := &leasesOf{hub: h}
	for want, c := range map[string]identity.CollectorConfig{
		"GCAfter is 1m59s, want at least twice the view's Liveness, 2m0s": {GCAfter: 2*time.Minute - time.Second},
		"Period is 1ms":    {Period: time.Millisecond},
		"MaxPerPass is -1": {MaxPerPass: -1},
	} {
		if _, err := identity.NewCollector(client, view, c); err == nil || !strings.Contains(err.Error(), "collector: "+want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	_, none := identity.NewCollector(nil, view, identity.CollectorConfig{})
	_, blind := identity.NewCollector(client, nil, identity.CollectorConfig{})
	if none == nil || blind == nil {
		t.Errorf("without a client: %v, without a view: %v, want errors", none, blind)
	}
	if _, err := identity.NewCollector(client, view, identity.CollectorConfig{}); err != nil {
		t.Errorf("the zero value: %v", err)
	}
}
