// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// suffixes is a policy that forbids to change what stands behind the colon of a word.
type suffixes struct{}

func (suffixes) Judge(from, to []byte) (string, error) {
	_, a, _ := strings.Cut(string(from), ":")
	_, b, _ := strings.Cut(string(to), ":")
	if a != b {
		return "", errors.New("field policy: field suffix must not be changed")
	}
	return "Restart", nil
}

// inspector answers for objects whose entry holds a word.
type inspector struct {
	mu    sync.Mutex
	words map[string]error
}

func inspecting(words map[string]error) *inspector { return &inspector{words: words} }

// set changes the answer for a word; nil is that there is nothing against it.
func (i *inspector) set(word string, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.words[word] = err; err == nil {
		delete(i.words, word)
	}
}

func (i *inspector) Inspect(_ context.Context, key string, o configsync.Object) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for word, err := range i.words {
		if strings.Contains(o.Data[key], word) {
			return err
		}
	}
	return nil
}

// onNodeWith is onNode with more options.
func onNodeWith(t *testing.T, tune func(*configsync.Options[string]), f func(n *node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.init, n.adjust = "good-init:a", tune
		n.start()
		defer func() { n.stop() }()
		f(n)
	})
}

func withPolicy(o *configsync.Options[string]) { o.Changes = suffixes{} }

// refused fails the test unless the object is listed as bad for that cause.
func (n *node) refused(o configsync.Object, cause string) {
	n.t.Helper()
	st := n.syncer.Status()
	at := slices.IndexFunc(st.Rejected, func(e lkg.BadEntry) bool { return e.Ref.UID == o.UID })
	if at < 0 || !strings.Contains(st.Rejected[at].Evidence, cause) {
		n.t.Errorf("rejected are %+v, want %q for the cause %q", st.Rejected, o.UID, cause)
	}
	if want := "failed to validate current (UID: " + o.UID + ")"; st.Condition.Status != lkg.StatusFalse || st.Condition.Reason != want {
		n.t.Errorf("condition %+v, want False because %q", st.Condition, want)
	}
}

// C-20: a change that the policy forbids is refused before anything of it is stored or restarted, from the local config
// on.
func TestForbiddenChangeIsRefusedBeforeAdoption(t *testing.T) {
	onNodeWith(t, withPolicy, func(n *node) {
		v0 := n.push("v0", "good-0:b")
		n.wait(time.Minute)
		n.runs(configsync.Object{}, "the policy forbids the way from the init config")
		n.refused(v0, "field suffix must not be changed")
		o := n.push("v1", "good-1:a")
		n.wait(12 * time.Minute)
		n.runs(o, "the policy permits it")
		starts := len(n.child.Starts())
		v2 := n.push("v2", "good-2:b")
		n.wait(time.Minute)
		n.runs(o, "the policy forbids the way from the last known good config")
		n.refused(v2, "field suffix must not be changed")
		if got := len(n.child.Starts()); got != starts {
			n.t.Errorf("%d starts more, want none", got-starts)
		}
		if _, err := n.disk.Get(n.t.Context(), "checkpoints/"+v2.UID); err == nil {
			n.t.Error("what was refused has a checkpoint")
		}
		v3 := n.push("v3", "good-3:a")
		n.wait(12 * time.Minute)
		n.runs(v3, "the next one is permitted")
	})
}

// What a change is measured against is the last known good config, not the init config, which may have other values.
func TestLocalBaseOfChanges(t *testing.T) {
	policy := false
	tune := func(o *configsync.Options[string]) {
		if policy {
			withPolicy(o)
		}
	}
	onNodeWith(t, tune, func(n *node) {
		n.push("v1", "good-1:b")
		n.wait(12 * time.Minute)
		n.stop()
		policy = true
		n.start()
		v2 := n.push("v2", "good-2:b")
		n.wait(time.Minute)
		n.runs(v2, "nothing that is forbidden changes against v1")
	})
}

// R-CS-66: a config that was refused and forgotten is judged by the policy again: by a live agent, by one that is
// started meanwhile, and by another version of the agent, which doesn't know what the one before has refused.
func TestForgottenConfigIsJudgedAgain(t *testing.T) {
	version := "v1.2.3"
	tune := func(o *configsync.Options[string]) { withPolicy(o); o.Version = version }
	onNodeWith(t, tune, func(n *node) {
		o := n.push("v1", "good-1:a")
		n.wait(12 * time.Minute)
		v2 := n.push("v2", "good-2:b")
		n.wait(time.Minute)
		check := func(when string) {
			n.t.Helper()
			n.wait(5 * time.Minute)
			n.runs(o, when)
			n.refused(v2, "field suffix must not be changed")
		}
		for range 2 {
			if err := n.syncer.Forget(n.t.Context(), v2.UID); err != nil {
				n.t.Fatal(err)
			}
			check("forgotten by a live agent")
		}
		n.server.Down(true)
		if err := n.syncer.Forget(n.t.Context(), v2.UID); err != nil {
			n.t.Fatal(err)
		}
		n.stop()
		n.start()
		n.wait(time.Minute)
		n.runs(o, "forgotten, and started without a server")
		n.server.Down(false)
		check("the server is back")
		n.stop()
		version = "v1.3.0"
		n.start()
		check("another version of the agent")
	})
}

// A config on trial is judged at each start: against the last known good one, so that a policy that was made stricter
// is kept.
func TestTrialIsJudgedAtEachStart(t *testing.T) {
	strict := false
	tune := func(o *configsync.Options[string]) {
		if strict {
			withPolicy(o)
		}
	}
	onNodeWith(t, tune, func(n *node) {
		v1 := n.push("v1", "good-1:b")
		n.wait(time.Minute)
		n.runs(v1, "no policy yet")
		n.stop()
		strict = true
		n.start()
		n.wait(time.Minute)
		n.runs(configsync.Object{}, "on trial, and forbidden by now")
		n.refused(v1, "field suffix must not be changed")
		n.stop()
		strict = false
		n.start()
		if err := n.syncer.Forget(n.t.Context(), v1.UID); err != nil {
			n.t.Fatal(err)
		}
		n.wait(12 * time.Minute)
		n.runs(v1, "forgotten, and permitted")
		n.stop()
		strict = true
		n.start()
		n.wait(time.Minute)
		n.runs(v1, "it has passed its trial: nothing changes")
	})
}

// C-22: a last known good config that is lost does not stop the way to a new one: the next to go back to stands in for
// it.
func TestLostGoodConfigDoesNotBlockThePolicy(t *testing.T) {
	onNodeWith(t, withPolicy, func(n *node) {
		o := n.push("v1", "good-1:a")
		n.wait(12 * time.Minute)
		n.stop()
		for _, dir := range []string{"checkpoints", "good"} {
			streams, err := n.disk.List(n.t.Context(), dir)
			if err != nil {
				n.t.Fatal(err)
			}
			for _, s := range streams {
				if err := n.disk.Delete(n.t.Context(), s); err != nil {
					n.t.Fatal(err)
				}
			}
		}
		v2 := n.push("v2", "good-2:a")
		n.start()
		n.wait(12 * time.Minute)
		n.runs(v2, "compared with the init config, as "+o.UID+" is lost")
	})
}

// Explain and a start are of one mind about a change.
func TestExplainJudgesChanges(t *testing.T) {
	onNodeWith(t, nil, func(n *node) {
		n.push("v1", "good-1:b")
		n.wait(time.Minute)
		for _, o := range []configsync.Options[string]{n.options(), func() configsync.Options[string] { o := n.options(); withPolicy(&o); return o }()} {
			e, err := configsync.Explain(n.t.Context(), n.disk, o)
			if err != nil || (e.Next.Rejected != nil) != (o.Changes != nil) {
				n.t.Errorf("with the policy %v: %+v, %v", o.Changes, e.Next, err)
			}
		}
	})
}

// installed is a proof by a program that may be replaced.
type installed struct{ *inspector }

func (installed) ForEachBinary() bool { return true }

// A program that was replaced judges the last known good config before it is started with it. A refusal has it left
// without a crash; a program that gives no answer does not. R-CS-52: it is never asked about the local config, as its
// refusal would leave the node without a program.
func TestANewBinaryJudgesWhatIsInUse(t *testing.T) {
	proof := installed{inspecting(map[string]error{"init": errors.New("asked about the local config")})}
	onNodeWith(t, func(o *configsync.Options[string]) { o.Proofs = []configsync.Inspector{proof} }, func(n *node) {
		v1 := n.promoted()
		word := v1.Data[n.options().Key]
		proof.set(word, fmt.Errorf("%w: no answer", configsync.ErrUndecided))
		n.stop()
		n.start()
		n.runs(v1, "no answer says nothing against it")
		started := n.syncer.Status().StartedAt
		proof.set(word, errors.New("the new program does not know a gate"))
		n.wait(time.Hour)
		if got := n.syncer.Status().StartedAt; !got.Equal(started) {
			t.Errorf("the program was started anew at %s while the running one was well, want the start of %s", got, started)
		}
		n.stop()
		n.start()
		n.runs(configsync.Object{}, "the new program refuses v1")
		n.refused(v1, "does not know a gate")
	})
}

// R-CS-41: a proof that fails refuses the config; one that could not be had holds it back, without a word against it,
// until it can be had.
func TestProofComesBeforeAdoption(t *testing.T) {
	proof := inspecting(map[string]error{"-2": errors.New("the program says no"), "-3": fmt.Errorf("%w: no program", configsync.ErrUndecided)})
	onNodeWith(t, func(o *configsync.Options[string]) { o.Proofs = []configsync.Inspector{proof} }, func(n *node) {
		v1 := n.push("v1", "good-1")
		n.wait(12 * time.Minute)
		n.runs(v1, "proven")
		v2 := n.push("v2", "good-2")
		n.wait(time.Minute)
		n.runs(v1, "the proof says no")
		n.refused(v2, "the program says no")
		v3 := n.push("v3", "good-3")
		n.wait(time.Minute)
		n.runs(v1, "the proof is open")
		st := n.syncer.Status()
		if len(st.Rejected) != 1 || !strings.Contains(st.Error, "no program") || st.Condition.Status != lkg.StatusUnknown {
			n.t.Errorf("status %+v, want v2 alone rejected and the cause why v3 waits", st)
		}
		proof.set("-3", nil)
		n.wait(12 * time.Minute)
		n.runs(v3, "the proof is there")
		proof.set("-3", errors.New("the program has changed its mind"))
		n.stop()
		n.start()
		n.wait(time.Minute)
		n.runs(v3, "it has passed its trial, which is the better proof")
	})
}

// What an Inspector refuses is not decoded and not stored; it is asked again at each load, and never about the local
// config.
func TestInspectorIsAskedAtEachLoad(t *testing.T) {
	unsigned := inspecting(map[string]error{"panic": errors.New("no good signature"), "init": errors.New("asked about the local config")})
	onNodeWith(t, func(o *configsync.Options[string]) { o.Inspectors = []configsync.Inspector{unsigned} }, func(n *node) {
		v1 := n.push("v1", "good-1")
		n.wait(12 * time.Minute)
		n.runs(v1, "signed")
		v2 := n.push("v2", "panic-2")
		n.wait(time.Minute)
		n.runs(v1, "not signed")
		n.refused(v2, "no good signature")
		if _, err := n.disk.Get(n.t.Context(), "checkpoints/"+v2.UID); err == nil {
			n.t.Error("what is not signed has a checkpoint")
		}
		n.server.Down(true)
		n.stop()
		n.start()
		n.wait(time.Minute)
		n.runs(v1, "signed, and needs no server")
		n.stop()
		unsigned.set("good-1", errors.New("its key is not trusted any more"))
		n.start()
		n.wait(time.Minute)
		n.runs(configsync.Object{}, "its key was taken away")
		n.stop()
		unsigned.set("good-1", nil)
		n.start()
	})
}

// C-20: a rollout's agent is told what a config takes from the node, and that the policy forbids it, before anything is
// adopted.
func TestSteeredKnowsWhatAConfigDisrupts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.init, n.adjust = "good-init:a", withPolicy
		s := n.steer()
		defer func() { n.stop() }()
		ask := func(config, want, wantRefused string) {
			t.Helper()
			if word, refused, err := s.Disruption(t.Context(), config); word != want || refused != wantRefused || err != nil {
				t.Errorf("config %q: %q, refused %q, %v; want %q and %q", config, word, refused, err, want, wantRefused)
			}
		}
		const forbidden = "field policy: field suffix must not be changed"
		v1, v2 := n.put("v1", "good-1:a"), n.put("v2", "good-2:b")
		ask(v1, "Restart", "")
		ask(v2, "", forbidden)
		ask("", "Restart", "")
		ask("absent", "", "")
		n.adopts(s, v1)
		n.wait(12 * time.Minute)
		n.has(s, v1, v1)
		n.adopts(s, v2)
		n.wait(time.Minute)
		n.has(s, v1, v1)
		n.judged(s, v2, "bad", "failed to validate")
		n.server.Down(true)
		ask(v1, "Restart", "")
		n.init = "good-init:c"
		n.stop()
		s = n.steer()
		ask("", "", "")
		unstarted, err := configsync.NewSteered(t.Context(), func() configsync.Options[string] {
			o := n.options()
			o.Source, o.Restarter = nil, n.child
			return o
		}(), configsync.InNamespace("configs"))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := unstarted.Disruption(t.Context(), v1); !errors.Is(err, configsync.ErrNotStarted) {
			t.Errorf("before the first start: %v", err)
		}
	})
}
