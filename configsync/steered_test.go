// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/internal/compat"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
)

// steer starts a process on the node that is told which config is wanted.
func (n *node) steer() *configsync.Steered[string] {
	n.t.Helper()
	return n.steerBy(configsync.InNamespace("configs"))
}

func (n *node) steerBy(find configsync.Finder) *configsync.Steered[string] {
	n.t.Helper()
	n.child = &configsynctest.Child[string]{Conduct: conduct}
	o := n.options()
	o.Source, o.Fetcher, o.Restarter = nil, n.server, n.child
	s, err := configsync.NewSteered(n.t.Context(), o, find)
	if err != nil {
		n.t.Fatal(err)
	}
	if _, _, _, err := s.Configs(n.t.Context()); !errors.Is(err, configsync.ErrNotStarted) {
		n.t.Errorf("before the first start: %v, want that nothing is in use", err)
	}
	n.syncer = s.Syncer
	ctx, cancel := context.WithCancel(n.t.Context())
	done := make(chan error, 2)
	go func() { done <- n.child.Run(ctx, s.Syncer) }()
	synctest.Wait()
	go func() { done <- n.drive(ctx, s.Syncer) }()
	synctest.Wait()
	n.stop = func() {
		_ = s.Stopping(n.t.Context())
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				n.t.Errorf("a loop of the node ended with %v, want nil", err)
			}
		}
	}
	return s
}

// put makes a config, and spells it.
func (n *node) put(name, word string) string {
	return name + "@" + n.server.Put("configs", name, map[string]string{"kubelet": word}, true).Digest()
}

func (n *node) adopts(s *configsync.Steered[string], config string) {
	n.t.Helper()
	if err := s.Adopt(n.t.Context(), config); err != nil {
		n.t.Fatalf("Adopt(%q): %v", config, err)
	}
}

// has checks which config is in use, and which is the last known good one.
func (n *node) has(s *configsync.Steered[string], inUse, good string) {
	n.t.Helper()
	if a, b, _, err := s.Configs(n.t.Context()); a != inUse || b != good || err != nil {
		n.t.Errorf("configs %q and %q, %v, want %q, and back to %q: %+v", a, b, err, inUse, good, s.Status())
	}
}

// judged checks what is thought of a config.
func (n *node) judged(s *configsync.Steered[string], config, want, why string) {
	n.t.Helper()
	good, bad, says, err := s.Judge(n.t.Context(), config)
	got := map[bool]string{true: "good", false: "open"}[good]
	if bad {
		got = "bad"
	}
	if got != want || err != nil || !strings.Contains(says, why) {
		n.t.Errorf("config %q is %s: %s, %v, want %s: %s", config, got, says, err, want, why)
	}
}

// steered runs f with a node that is told what is wanted.
func steered(t *testing.T, f func(n *node, s *configsync.Steered[string])) {
	eachDriver(t, func(t *testing.T, d driver) {
		n := newNode(t)
		n.drive = d
		s := n.steer()
		defer func() { n.stop() }()
		f(n, s)
	})
}

// R-CS-31, R-CS-55: what is adopted by name is taken up, tried, promoted, and stays wanted over a restart; nothing is
// adopted twice, and the empty name is the local config.
func TestSteeredAdopts(t *testing.T) {
	steered(t, func(n *node, s *configsync.Steered[string]) {
		n.has(s, "", "")
		n.judged(s, "", "good", "came with")
		one := n.put("one", "good-1")
		n.adopts(s, one)
		n.wait(time.Minute)
		n.has(s, one, "")
		n.judged(s, one, "open", "using current")
		n.wait(15 * time.Minute)
		n.has(s, one, one)
		n.judged(s, one, "good", "passed")
		n.judged(s, "one", "good", "passed")
		n.judged(s, "other", "open", "")
		starts := len(n.child.Starts())
		n.adopts(s, one)
		n.wait(time.Minute)
		if got := len(n.child.Starts()); got != starts {
			t.Errorf("adopting what is wanted has started it %d times more", got-starts)
		}
		n.stop()
		s = n.steer()
		n.wait(15 * time.Minute)
		n.has(s, one, one)
		two := n.put("two", "good-2")
		n.server.Down(true)
		n.adopts(s, two)
		n.wait(time.Minute)
		n.has(s, one, one)
		n.stop()
		n.server.Down(false)
		s = n.steer()
		n.wait(15 * time.Minute)
		n.has(s, two, two)
		n.adopts(s, "")
		n.wait(time.Minute)
		n.has(s, "", "")
	})
}

// R-CS-31: a config goes by the name under which it was adopted last, whatever its object is called.
func TestSteeredNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		s := n.steerBy(func(_ context.Context, name, digest string) (configsync.Spec, error) {
			return configsync.Spec{Namespace: "configs", Name: strings.TrimPrefix(name, "release-"), Digest: digest}, nil
		})
		defer func() { n.stop() }()
		object := n.put("one", "good-1")
		named := "release-" + object
		n.adopts(s, "release-one")
		n.wait(15 * time.Minute)
		n.has(s, named, named)
		starts := len(n.child.Starts())
		n.adopts(s, named)
		n.adopts(s, object)
		n.wait(time.Minute)
		n.has(s, object, object)
		n.judged(s, named, "good", "passed")
		if got := len(n.child.Starts()); got != starts {
			t.Errorf("the same object under other names has started it %d times more", got-starts)
		}
	})
}

// R-CS-33: what goes bad is left, and not adopted again; what is left by word is listed with that word. The name by
// which a config was adopted last is its name.
func TestSteeredGoesBack(t *testing.T) {
	steered(t, func(n *node, s *configsync.Steered[string]) {
		ctx := n.t.Context()
		if err := s.GoBack(ctx, "", "no reason"); err == nil {
			t.Error("the local config was left")
		}
		one := n.put("one", "good-1")
		n.adopts(s, one)
		n.wait(15 * time.Minute)
		crash := n.put("crash", "crash-2")
		n.adopts(s, crash)
		n.wait(5 * time.Minute)
		n.has(s, one, one)
		n.judged(s, crash, "bad", "")
		if err := s.Adopt(ctx, crash); err == nil || !strings.Contains(err.Error(), "listed as bad") {
			t.Errorf("what is listed was adopted: %v", err)
		}
		three := n.put("three", "good-3")
		n.adopts(s, three)
		n.wait(time.Minute)
		if err := s.GoBack(ctx, one, "no reason"); err == nil {
			t.Error("a config that is not in use was left")
		}
		if err := s.GoBack(ctx, three, "the rollout says so"); err != nil {
			t.Error(err)
		}
		n.wait(time.Minute)
		n.has(s, one, one)
		n.judged(s, three, "bad", "the rollout says so")
	})
}

// R-CS-27: where nothing is known of a config that is to be adopted, the error says so, nothing changes, and it can
// be adopted later. What is known to be wrong says that, too.
func TestSteeredKnowsWhatItDoesNotKnow(t *testing.T) {
	for _, c := range []struct {
		err  error
		open bool
	}{
		{configsync.ErrUnreachable, true}, {configsync.ErrForbidden, true}, {context.DeadlineExceeded, true},
		{configsync.ErrMissing, false}, {configsync.ErrMismatch, false}, {errors.New("boom"), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNode(t)
			answer := fmt.Errorf("asking: %w", c.err)
			s := n.steerBy(func(ctx context.Context, name, digest string) (configsync.Spec, error) {
				if answer != nil {
					return configsync.Spec{}, answer
				}
				return configsync.InNamespace("configs")(ctx, name, digest)
			})
			defer func() { n.stop() }()
			one := n.put("one", "good-1")
			err := s.Adopt(t.Context(), one)
			unknown, ok := compat.AsType[interface {
				error
				Temporary() bool
			}](err)
			if !errors.Is(err, c.err) || (ok && unknown.Temporary()) != c.open {
				t.Errorf("got %v, temporary %t, want %v, temporary %t", err, ok, c.err, c.open)
			}
			n.wait(time.Minute)
			n.has(s, "", "")
			answer = nil
			n.adopts(s, one)
			n.wait(time.Minute)
			n.has(s, one, "")
		})
	}
}

// A node that was assigned its config by another source keeps it until it is told another one, and after its record
// is lost.
func TestSteeredTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.start()
		v1 := n.promoted()
		n.stop()
		s := n.steer()
		defer func() { n.stop() }()
		name := "v1@" + v1.Digest()
		n.wait(15 * time.Minute)
		n.has(s, name, name)
		one := n.put("one", "good-1b")
		n.adopts(s, one)
		n.wait(15 * time.Minute)
		n.has(s, one, one)
		n.stop()
		n.disk.Corrupt("wanted")
		s = n.steer()
		n.wait(15 * time.Minute)
		n.has(s, one, one)
	})
}

// What can't be adopted is refused before anything is recorded.
func TestSteeredRefuses(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	steered(t, func(n *node, s *configsync.Steered[string]) {
		for _, config := range []string{"x@md5:1", "@" + digest, "a/b@" + digest} {
			if err := s.Adopt(n.t.Context(), config); err == nil {
				t.Errorf("config %q was adopted", config)
			}
		}
		n.disk.Fail(errors.New("the disk is full"))
		if err := s.Adopt(n.t.Context(), "x@"+digest); err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("on a full disk: %v", err)
		}
		n.disk.Fail(nil)
	})
	n := newNode(t)
	o := n.options()
	o.Restarter = &configsynctest.Child[string]{}
	find := func(spec configsync.Spec, err error) configsync.Finder {
		return func(context.Context, string, string) (configsync.Spec, error) { return spec, err }
	}
	if _, err := configsync.NewSteered(t.Context(), o, configsync.InNamespace("x")); err == nil {
		t.Error("a Steered has a Source of somebody else")
	}
	o.Source = nil
	if _, err := configsync.NewSteered(t.Context(), o, nil); err == nil {
		t.Error("a Steered has no Finder")
	}
	for what, finder := range map[string]configsync.Finder{
		"another digest": find(configsync.Spec{Namespace: "x", Name: "x", Digest: "sha256:" + strings.Repeat("1", 64)}, nil),
		"edits":          find(configsync.Spec{Namespace: "x", Name: "x", Policy: configsync.Follow}, nil),
		"an error":       find(configsync.Spec{}, configsync.ErrMissing),
	} {
		s, err := configsync.NewSteered(t.Context(), o, finder)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Adopt(t.Context(), "x@"+digest); err == nil {
			t.Errorf("adopted with %s", what)
		}
	}
}
