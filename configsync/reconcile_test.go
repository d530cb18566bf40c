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
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/lkg"
)

// A driver keeps a Syncer going until ctx ends, and returns nil then.
type driver func(ctx context.Context, s *configsync.Syncer[string]) error

// eachDriver runs f in a bubble for each way to drive a Syncer: all keep the same promises.
func eachDriver(t *testing.T, f func(t *testing.T, d driver)) {
	t.Helper()
	eachPromptDriver(t, f)
	t.Run("Reconcile without Watch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, reconcilePolled) })
	})
}

// eachPromptDriver is eachDriver without the one that looks at the source, and reports, each second.
func eachPromptDriver(t *testing.T, f func(t *testing.T, d driver)) {
	t.Helper()
	for name, d := range map[string]driver{"Run": runSyncer, "Reconcile": reconcileWatched} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, d) }) })
	}
}

func runSyncer(ctx context.Context, s *configsync.Syncer[string]) error { return s.Run(ctx) }

// reconcileWatched schedules as a work queue does: a pass when Watch has called, and when the one before has asked for
// it.
func reconcileWatched(ctx context.Context, s *configsync.Syncer[string]) error {
	queue, watched := make(chan struct{}, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	go func() {
		watched <- s.Watch(ctx, func() {
			select {
			case queue <- struct{}{}:
			default:
			}
		})
	}()
	err := reconcileFrom(ctx, s, queue)
	stop()
	if watchErr := <-watched; err == nil {
		err = watchErr
	}
	return err
}

// reconcilePolled calls each second, whatever was asked for.
func reconcilePolled(ctx context.Context, s *configsync.Syncer[string]) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	queue := make(chan struct{}, 1)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				select {
				case queue <- struct{}{}:
				default:
				}
			}
		}
	}()
	return reconcileFrom(ctx, s, queue)
}

func reconcileFrom(ctx context.Context, s *configsync.Syncer[string], queue <-chan struct{}) error {
	for {
		after, err := s.Reconcile(ctx, "node-1")
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		var timer <-chan time.Time
		if after > 0 {
			timer = time.After(after)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-queue:
		case <-timer:
		}
	}
}

// Each call that can't be served is a typed error, and no call waits.
func TestReconcileRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		o := n.options()
		o.Node, o.Restarter = "node-1", restarterFunc(func(context.Context, configsync.Change) error { return nil })
		s, err := configsync.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		reconcile := func(ctx context.Context, key string) error { _, err := s.Reconcile(ctx, key); return err }
		wantError := func(what string, err, want error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", what, err, want)
			}
		}
		wantError("before Bootstrap", reconcile(t.Context(), "node-1"), configsync.ErrNotStarted)
		if _, err := s.Bootstrap(t.Context(), lkg.Exit{}); err != nil {
			t.Fatal(err)
		}
		var foreign *option.Error
		err = reconcile(t.Context(), "node-2")
		const says = `configsync.Syncer.Reconcile: the key must be "node-1" (Options.Node), got "node-2"`
		if !errors.As(err, &foreign) || err.Error() != says {
			t.Errorf("a foreign key: got %v, want an option.Error that names both", err)
		}
		cause := errors.New("the manager ends")
		over, end := context.WithCancelCause(t.Context())
		end(cause)
		wantError("a context that has ended", reconcile(over, "node-1"), cause)
		if err := s.Watch(t.Context(), nil); !errors.As(err, &foreign) {
			t.Errorf("Watch without a function: got %v, want an option.Error", err)
		}

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		wantError("while Run goes on", reconcile(ctx, "node-1"), configsync.ErrRunning)
		wantError("Watch while Run goes on", s.Watch(ctx, func() {}), configsync.ErrRunning)
		stop()
		wantError("Run", <-ended, nil)
		ctx, stop = context.WithCancel(t.Context())
		go func() { ended <- s.Watch(ctx, func() {}) }()
		synctest.Wait()
		wantError("a second Watch", s.Watch(ctx, func() {}), configsync.ErrRunning)
		wantError("Run beside a Watch", s.Run(ctx), configsync.ErrRunning)
		wantError("Reconcile beside a Watch", reconcile(ctx, "node-1"), nil)
		stop()
		wantError("Watch", <-ended, nil)
		wantError("Reconcile after both", reconcile(t.Context(), "node-1"), nil)
	})
}

// A pass that hangs in a call ends with its context, says so, and leaves the Syncer for the next one.
func TestReconcileIsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		o := n.options()
		o.Restarter = restarterFunc(func(context.Context, configsync.Change) error { return nil })
		hang := make(chan struct{})
		o.Source = sourceFunc(func(ctx context.Context) (*configsync.Spec, error) {
			select {
			case <-hang:
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		s, err := configsync.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Bootstrap(t.Context(), lkg.Exit{}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := s.Reconcile(ctx, "node-1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the context has ended", err)
		}
		close(hang)
		after, err := s.Reconcile(t.Context(), "node-1")
		if err != nil || after < 8*time.Minute || after > 10*time.Minute {
			t.Errorf("the next pass: got %s and %v, want to be called each Resync", after, err)
		}
	})
}

// requeueAfter is the time to the next thing that is due; trouble with a server is no error.
func TestRequeueAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		o := n.options()
		o.Restarter = restarterFunc(func(context.Context, configsync.Change) error { return nil })
		s, err := configsync.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		start := func() {
			t.Helper()
			if _, err := s.Bootstrap(t.Context(), lkg.Exit{Kind: lkg.ExitPlanned}); err != nil {
				t.Fatal(err)
			}
		}
		want := func(what string, least, most time.Duration) {
			t.Helper()
			after, err := s.Reconcile(t.Context(), "any key")
			if err != nil || after < least || after > most {
				t.Errorf("%s: got %s and %v, want %s to %s and no error", what, after, err, least, most)
			}
		}
		start()
		want("nothing to do", 8*time.Minute, 10*time.Minute)
		n.server.Down(true)
		want("without a server", 800*time.Millisecond, time.Second)
		if s.Status().Error == "" {
			t.Error("the status has no error, want that of the source")
		}
		n.server.Down(false)
		n.push("v1", "good-1")
		want("while the restart for a new config is under way", time.Second, 5*time.Second)
		start()
		want("on trial", 10*time.Second, 10*time.Second)
		n.wait(4 * time.Second)
		want("on trial, called before its time", 6*time.Second, 6*time.Second)
		for range 62 {
			n.wait(10 * time.Second)
			want("on trial, or just promoted", time.Second, 10*time.Minute)
		}
		want("promoted", 8*time.Minute, 10*time.Minute)
		if s.Status().LastKnownGood.Name != "v1" {
			t.Errorf("last known good is %+v, want v1", s.Status().LastKnownGood)
		}
	})
}

// TestReconcileWithoutASource is not to be called each second: nothing is read, and what was reported is reported again
// each Resync.
func TestReconcileWithoutASource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		o := n.options()
		o.Source = nil
		s, err := configsync.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Bootstrap(t.Context(), lkg.Exit{Kind: lkg.ExitPlanned}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			after, err := s.Reconcile(t.Context(), "any key")
			if err != nil || after < 8*time.Minute {
				t.Errorf("got %s and %v, want some 10 minutes and no error", after, err)
			}
		}
	})
}

// TestReconcileCutShortReadsAgain has a call end while the source is asked, after the watch told of a change: the next
// call asks again.
func TestReconcileCutShortReadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		o := n.options()
		o.Restarter = restarterFunc(func(context.Context, configsync.Change) error { return nil })
		asked, hang := 0, false
		o.Source = sourceFunc(func(ctx context.Context) (*configsync.Spec, error) {
			if asked++; hang {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, nil //nolint:nilnil // it asks for the local config
		})
		s, err := configsync.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Bootstrap(t.Context(), lkg.Exit{Kind: lkg.ExitPlanned}); err != nil {
			t.Fatal(err)
		}
		watching, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Watch(watching, func() {}) }()
		synctest.Wait()
		if _, err := s.Reconcile(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		hang = true
		n.wait(11 * time.Minute) // the source is due
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := s.Reconcile(short, "key"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that is cut short: got %v, want context.DeadlineExceeded", err)
		}
		hang = false
		before := asked
		if _, err := s.Reconcile(t.Context(), "key"); err != nil || asked == before {
			t.Errorf("the call after it: got %v, and the source was asked %d times, want once more", err, asked-before)
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A sourceFunc is a Source without changes.
type sourceFunc func(context.Context) (*configsync.Spec, error)

func (f sourceFunc) Desired(ctx context.Context) (*configsync.Spec, error) { return f(ctx) }

func (sourceFunc) Watch(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}
