// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/examples/internal/agent/prove"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/lkg"
)

// counted is a program that writes down each run, and answers with the status in a file, 0 without one.
type counted struct {
	t    *testing.T
	dir  string
	disk *configsynctest.Disk
}

func newCounted(t *testing.T) counted { return counted{t, t.TempDir(), &configsynctest.Disk{}} }

func (c counted) options() prove.Options {
	o := shell(`echo >> "$0/runs"; exit $(cat "$0/status" 2>/dev/null || echo 0)`, c.dir)
	o.Store = c.disk
	return o
}

func (c counted) answers(status int) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, "status"), []byte(fmt.Sprint(status)), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c counted) ran(what string, want int) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, "runs"))
	if got := strings.Count(string(text), "\n"); got != want {
		c.t.Errorf("%s: the program has run %d times, want %d (%v)", what, got, want, err)
	}
}

// asked asks a process of its own, so to speak.
func (c counted) asked(what string, o prove.Options, obj configsync.Object, want string) {
	c.t.Helper()
	wants(c.t, what, program(c.t, o).Inspect(c.t.Context(), "config", obj), want)
}

// The program runs once for a config and a version, whatever it said, over restarts; and anew for whatever could change the answer.
func TestAnswerOutlivesTheProcess(t *testing.T) {
	c := newCounted(t)
	c.asked("first", c.options(), object("a"), "accepted")
	c.answers(65)
	c.asked("after a restart", c.options(), object("a"), "accepted")
	c.ran("one config", 1)
	c.asked("another config", c.options(), object("b"), "refused")
	c.answers(0)
	c.asked("another config after a restart", c.options(), object("b"), "refused")
	c.ran("two configs", 2)
	for what, change := range map[string]func(o *prove.Options){
		"version": func(o *prove.Options) { o.Version = "v2" }, "args": func(o *prove.Options) { o.Args = append(o.Args, "x") },
		"env": func(o *prove.Options) { o.Env = []string{"A=1"} }, "dir": func(o *prove.Options) { o.Dir = "/tmp" },
	} {
		before := c.options()
		change(&before)
		c.asked(what, before, object("b"), "accepted")
	}
	c.ran("four changes", 6)
	moved := object("b")
	moved.Data["other"] = "limits of the trial"
	c.asked("another entry beside it", c.options(), moved, "accepted")
	c.asked("the version before", c.options(), object("b"), "refused")
	c.ran("and back", 7)
}

// What was not decided is asked again, and never on record.
func TestUndecidedIsAskedAgain(t *testing.T) {
	c := newCounted(t)
	p := program(t, c.options())
	c.answers(1)
	for range 2 {
		wants(t, "trouble", p.Inspect(t.Context(), "config", object("a")), "undecided")
	}
	c.ran("trouble", 2)
	if n := c.disk.Writes(); n != 0 {
		t.Errorf("%d writes of what was not decided", n)
	}
	c.answers(0)
	wants(t, "no trouble", p.Inspect(t.Context(), "config", object("a")), "accepted")
}

// An answer that can't be recorded is not given, and not asked for again.
func TestAnswerIsOnRecordBeforeItIsGiven(t *testing.T) {
	c := newCounted(t)
	p := program(t, c.options())
	full := errors.New("no space left on device")
	c.disk.Fail(full)
	for range 2 {
		err := p.Inspect(t.Context(), "config", object("a"))
		wants(t, "a full disk", err, "undecided")
		if !errors.Is(err, full) {
			t.Errorf("error %v does not say why", err)
		}
	}
	c.disk.Fail(nil)
	wants(t, "a disk", p.Inspect(t.Context(), "config", object("a")), "accepted")
	c.asked("after a restart", c.options(), object("a"), "accepted")
	c.ran("all in all", 1)
}

// No record makes a node believe an answer that the program has not given.
func TestPlantedAnswerIsNotBelieved(t *testing.T) {
	secret := []byte("a secret of this node")
	c := newCounted(t)
	with := func(o prove.Options, secret []byte) prove.Options { o.Secret = secret; return o }
	record := func(o prove.Options) string {
		t.Helper()
		o.Store = &configsynctest.Disk{}
		wants(t, "making a record", program(t, o).Inspect(t.Context(), "config", object("a")), "accepted")
		raw, err := o.Store.Get(t.Context(), prove.Stream)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	good := record(with(c.options(), secret))
	other := c.options()
	other.Version = "v0"
	elsewhere := shell("exit 0")
	planted := map[string]string{
		"without the secret":       record(c.options()),
		"with another secret":      record(with(c.options(), []byte("a secret of another node"))),
		"renamed from a version":   strings.ReplaceAll(record(with(other, secret)), `"v0"`, `"v1"`),
		"of a version":             record(with(other, secret)),
		"of another program":       record(with(elsewhere, secret)),
		"with another time":        strings.Replace(good, `"tookNanoseconds":`, `"tookNanoseconds":1`, 1),
		"of a later format":        strings.Replace(good, `"format":1`, `"format":2`, 1),
		"cut":                      good[:len(good)-1],
		"empty":                    "",
		"null":                     "null",
		"with a sum that is empty": good[:strings.LastIndex(good, `"sum":"`)] + `"sum":""}]}`,
	}
	c.answers(65)
	for what, raw := range planted {
		if raw == good {
			t.Fatalf("%s: the record is not changed", what)
		}
		if err := c.disk.Put(t.Context(), prove.Stream, []byte(raw)); err != nil {
			t.Fatal(err)
		}
		c.asked(what, with(c.options(), secret), object("a"), "refused")
	}
	refusal, err := c.disk.Get(t.Context(), prove.Stream)
	if err != nil {
		t.Fatal(err)
	}
	turned := strings.Replace(string(refusal), `"Refused"`, `"Accepted"`, 1)
	if err := c.disk.Put(t.Context(), prove.Stream, []byte(turned)); err != nil || turned == string(refusal) {
		t.Fatal(err)
	}
	c.asked("a refusal turned round", with(c.options(), secret), object("a"), "refused")
	if err := c.disk.Put(t.Context(), prove.Stream, []byte(good)); err != nil {
		t.Fatal(err)
	}
	c.asked("the genuine record", with(c.options(), secret), object("a"), "accepted")
	c.disk.Corrupt(prove.Stream)
	c.asked("a damaged record", with(c.options(), secret), object("a"), "refused")
}

// The record is bounded: the oldest answers go first.
func TestAnswersAreBounded(t *testing.T) {
	c := newCounted(t)
	p := program(t, c.options())
	for i := range prove.MaxAnswers + 1 {
		wants(t, "filling", p.Inspect(t.Context(), "config", object(fmt.Sprint(i))), "accepted")
	}
	c.answers(65)
	c.asked("the newest", c.options(), object(fmt.Sprint(prove.MaxAnswers)), "accepted")
	c.asked("the second", c.options(), object("1"), "accepted")
	c.asked("the oldest", c.options(), object("0"), "refused")
}

// The program runs once, however many ask at the same time.
func TestManyAskAtOnce(t *testing.T) {
	c := newCounted(t)
	p := program(t, c.options())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { wants(t, "one of many", p.Inspect(t.Context(), "config", object("a")), "accepted") })
	}
	all.Wait()
	c.ran("many", 1)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	wants(t, "nobody waits", program(t, c.options()).Inspect(gone, "config", object("b")), "undecided")
	c.ran("nobody", 1)
}

// What is on record can be told without running anything, beside a live agent.
func TestRecallRunsNothing(t *testing.T) {
	c := newCounted(t)
	c.answers(65)
	wants(t, "nothing on record", program(t, c.options()).Recall(c.disk).Inspect(t.Context(), "config", object("a")), "undecided")
	c.asked("asked", c.options(), object("a"), "refused")
	wants(t, "on record", program(t, c.options()).Recall(c.disk).Inspect(t.Context(), "config", object("a")), "refused")
	c.ran("recalled", 1)
	if n := c.disk.Writes(); n != 1 {
		t.Errorf("%d writes, want that of the answer", n)
	}
}

// words is a codec of configs that are their text.
type words struct{}

func (words) Decode(key string, o configsync.Object) (string, lkg.Limits, error) {
	return o.Data[key], lkg.Limits{CrashLoopThreshold: 10}, nil
}

// exits asks for the next start.
type exits struct{}

var errExit = errors.New("exit")

func (exits) Restart(context.Context, configsync.Change) error { return errExit }

// C-21: a Syncer holds a config back while the program is in trouble, adopts it when the program accepts it, starts with it without another run,
// and refuses one that the program refuses.
func TestSyncerAsksTheProgram(t *testing.T) {
	c, server := newCounted(t), &configsynctest.Server{}
	c.answers(1)
	start := func() *configsync.Syncer[string] {
		s, err := configsync.New(t.Context(), configsync.Options[string]{
			Version: "v1", Key: "config", Codec: words{}, Default: func() string { return "built in" }, BootID: "b", RetryMin: 1, RetryMax: 20_000_000,
			Store: c.disk, Source: server, Fetcher: server, Restarter: exits{}, Proofs: []configsync.Inspector{program(t, c.options())},
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	boots := func(s *configsync.Syncer[string], want string) {
		t.Helper()
		if a, err := s.Bootstrap(t.Context(), lkg.Exit{}); err != nil || a.Config != want {
			t.Fatalf("started with %q, %v; want %q", a.Config, err, want)
		}
	}
	s := start()
	boots(s, "built in")
	name := func(n, text string) {
		o := server.Put("ns", n, map[string]string{"config": text}, true)
		server.Name(&configsync.Spec{Namespace: "ns", Name: n, UID: o.UID})
	}
	name("one", canary)
	done := make(chan error, 1)
	go func() { done <- s.Run(t.Context()) }()
	until(t, s, func(st configsync.Status) bool {
		return strings.Contains(st.Error, "exit status 1 ") && len(st.Rejected) == 0
	})
	c.answers(0)
	if err := <-done; !errors.Is(err, errExit) {
		t.Fatal(err)
	}
	c.answers(1)
	c.disk.Corrupt(prove.Stream)
	s = start()
	boots(s, "built in")
	if st := s.Status(); len(st.Rejected) > 0 {
		t.Errorf("status %+v: the config is rejected, as its answer is lost", st)
	}
	c.answers(0)
	boots(start(), canary)
	c.answers(1)
	s = start()
	boots(s, canary)
	c.answers(65)
	name("two", canary+canary)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- s.Run(ctx) }()
	until(t, s, func(st configsync.Status) bool {
		return len(st.Rejected) == 1 && strings.Contains(fmt.Sprintf("%+v", st.Rejected), "the program refuses it with exit status 65") &&
			!strings.Contains(fmt.Sprintf("%+v", st), canary)
	})
	cancel()
	<-done
}

func until(t *testing.T, s *configsync.Syncer[string], ok func(configsync.Status) bool) {
	t.Helper()
	if err := testproc.Poll(within, func() error {
		if st := s.Status(); !ok(st) {
			return fmt.Errorf("status %+v", st)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
