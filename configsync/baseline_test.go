// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
)

// A meter is a probe that calls a server and compares. Its fields are guarded by mu.
type meter struct {
	mu    sync.Mutex
	err   error         // of Check and Compare
	bad   string        // Compare with such a baseline fails, once it is set
	now   string        // what Baseline returns; empty: an error
	slow  time.Duration // how long Baseline takes
	asked int           // by Check or Compare
	seen  []string      // what Compare was given, without repetition
}

func (*meter) Name() string { return "meter" }

func (*meter) NeedsServer() bool { return true }

func (m *meter) Check(context.Context) error { return m.answerWith("nothing") }

func (m *meter) Compare(_ context.Context, baseline []byte, fallback bool) error {
	err := m.answerWith(fmt.Sprintf("%s, fallback %t", baseline, fallback))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bad != "" && m.bad == string(baseline) {
		return errors.New("what was there is gone")
	}
	return err
}

func (m *meter) answerWith(with string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if len(m.seen) == 0 || m.seen[len(m.seen)-1] != with {
		m.seen = append(m.seen, with)
	}
	return m.err
}

func (m *meter) TakeBaseline(ctx context.Context) ([]byte, error) {
	m.mu.Lock()
	slow, now := m.slow, m.now
	m.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if now == "" {
		return nil, errors.New("no server")
	}
	return []byte(now), nil
}

// set changes the meter, and returns what was seen since the last call.
func (m *meter) set(change func(*meter)) (seen string, asked int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen, asked = strings.Join(m.seen, "; "), m.asked
	m.seen, m.asked = nil, 0
	change(m)
	return seen, asked
}

func withMeter(t *testing.T, f func(n *node, m *meter)) {
	t.Helper()
	eachDriver(t, func(t *testing.T, d driver) {
		m := &meter{now: "a"}
		startedNode(t, func(o *configsync.Options[string]) { o.Probes = append(o.Probes, m) }, d, func(n *node) { f(n, m) })
	})
}

// L-CS-34: what a probe saw before the restart that adopts a config is what it compares with, for as long as that is
// on trial, after the death of the agent too, and for a fallback.
func TestBaselineIsTakenBeforeTheRestart(t *testing.T) {
	withMeter(t, func(n *node, m *meter) {
		v1 := n.push("v1", "good-1", "threshold", "2")
		n.wait(time.Minute)
		m.set(func(m *meter) { m.now = "b" })
		n.wait(time.Minute)
		if seen, _ := m.set(func(*meter) {}); seen != "a, fallback false" {
			t.Errorf("the probe compared with %q, want a, which was there before", seen)
		}
		n.kill()
		n.stop()
		n.start()
		n.wait(time.Minute)
		if seen, _ := m.set(func(*meter) {}); seen != "a, fallback false" {
			t.Errorf("after the death of the agent the probe compared with %q, want a, not what it sees during the trial", seen)
		}
		n.wait(12 * time.Minute)
		n.runs(v1, "a healthy config is promoted")
		n.push("v2", "crash-2")
		n.wait(5 * time.Minute)
		n.runs(v1, "a config that crashes is left")
		if seen, _ := m.set(func(*meter) {}); !strings.HasSuffix(seen, "b, fallback true") {
			t.Errorf("the probe compared with %q, want b at last, and to be told that a fallback is in use", seen)
		}
	})
}

// L-CS-34: a server that is away costs a restart two seconds at most, and the probe then compares with nothing.
func TestRestartDoesNotHangOnABaseline(t *testing.T) {
	for name, change := range map[string]func(*meter){
		"no answer":   func(m *meter) { m.slow = time.Hour },
		"an error":    func(m *meter) { m.now = "" },
		"is too long": func(m *meter) { m.now = strings.Repeat("x", 65<<10) },
	} {
		t.Run(name, func(t *testing.T) {
			withMeter(t, func(n *node, m *meter) {
				m.set(change)
				v1 := n.push("v1", "good-1")
				n.wait(4 * time.Second)
				n.runs(v1, "a restart waits for a baseline for two seconds at most")
				n.wait(time.Minute)
				if seen, _ := m.set(func(*meter) {}); seen != "nothing" {
					t.Errorf("the probe compared with %q, want nothing", seen)
				}
			})
		})
	}
}

// C-32: an idle node calls no server: such a probe is asked during a trial, and until a fallback has proven itself.
func TestServerIsAskedOnlyWhileSomethingHangsOnIt(t *testing.T) {
	withMeter(t, func(n *node, m *meter) {
		n.wait(time.Hour)
		if _, asked := m.set(func(*meter) {}); asked != 0 {
			t.Errorf("a node with its local config called the server %d times, want none", asked)
		}
		v1 := n.promoted()
		if _, asked := m.set(func(*meter) {}); asked == 0 {
			t.Error("the server was not called during a trial")
		}
		n.wait(time.Hour)
		if _, asked := m.set(func(*meter) {}); asked != 0 {
			t.Errorf("a node with a promoted config called the server %d times in an hour, want none", asked)
		}
		n.push("v2", "crash-2")
		n.wait(30 * time.Minute)
		n.runs(v1, "a config that crashes is left")
		if _, asked := m.set(func(*meter) {}); asked == 0 {
			t.Error("the server was not called after a rollback")
		}
		n.wait(time.Hour)
		if _, asked := m.set(func(*meter) {}); asked != 0 {
			t.Errorf("a fallback that was healthy for a whole trial called the server %d times in an hour, want none", asked)
		}
	})
}

// L-CS-34: a probe that can't tell, or that finds what every config needs broken, neither promotes a config nor
// rejects it.
func TestTrialStandsStillWhileNothingIsKnown(t *testing.T) {
	for want, err := range map[string]error{
		"meter (not known): the object could not be judged: no server": fmt.Errorf("%w: no server",
			configsync.ErrUndecided),
		"meter: what every config needs does not work: no runtime answers": fmt.Errorf("%w: no runtime answers",
			configsync.ErrBelow),
	} {
		t.Run(err.Error(), func(t *testing.T) {
			withMeter(t, func(n *node, m *meter) {
				v1 := n.push("v1", "good-1")
				n.wait(time.Minute)
				m.set(func(m *meter) { m.err = err })
				n.wait(2 * time.Hour)
				n.runs(v1, "nothing speaks against it")
				trial := n.syncer.Status().Trial
				if trial == nil || strings.Join(trial.Failing, "; ") != want {
					t.Fatalf("the trial is %+v, want one that goes on and says %q", trial, want)
				}
				if trial.Healthy > 2*time.Minute {
					t.Errorf("healthy for %s, want no credit for the time in which nothing was known", trial.Healthy)
				}
				m.set(func(m *meter) { m.err = nil })
				n.wait(12 * time.Minute)
				if got := n.syncer.Status().LastKnownGood.UID; got != v1.UID {
					t.Errorf("last known good is %q, want %q: the trial goes on once the probe can tell", got, v1.UID)
				}
			})
		})
	}
}

// L-CS-34: a baseline ends with the promotion, and each restart that goes up takes a new one. So neither a promoted
// config that dies months later nor what is below it is compared with what was there before it was adopted.
func TestABaselineEndsWithThePromotion(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		m, broken := &meter{now: "a"}, &atomic.Bool{}
		n := newNode(t)
		n.tune, n.drive = func(o *configsync.Options[string]) { o.Probes = append(o.Probes, m) }, d
		n.conduct = func(word string) configsynctest.Conduct {
			if word == "good-2" && broken.Load() {
				return configsynctest.Conduct{CrashAfter: 2 * time.Second}
			}
			return conduct(word)
		}
		n.start()
		defer func() { n.stop() }()
		v1 := n.promoted()
		m.set(func(m *meter) { m.now = "old" })
		v2 := n.push("v2", "good-2", "threshold", "2")
		n.wait(time.Minute)
		if seen, _ := m.set(func(m *meter) { m.now = "new" }); seen != "old, fallback false" {
			t.Errorf("the probe compared with %q, want old", seen)
		}
		n.wait(12 * time.Minute)
		if got := n.syncer.Status().LastKnownGood.UID; got != v2.UID {
			t.Fatalf("last known good is %q, want %q", got, v2.UID)
		}
		n.stop()
		broken.Store(true)
		m.set(func(m *meter) { m.bad = "old" })
		n.start()
		n.wait(2 * time.Hour)
		n.runs(v1, "what is below a dead config is not compared with what was there before that was adopted")
		seen, _ := m.set(func(*meter) {})
		if strings.Contains(seen, "old") || !strings.HasSuffix(seen, "new, fallback true") {
			t.Errorf("the probe compared with %q, want what was there before the retry of the dead config, new", seen)
		}
	})
}
