// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/lkg"
)

// words is a codec whose configs are single words: "good…" is good, "crash…" crashes the child 2 s after its start,
// "sick…" fails its probe, "invalid…" fails validation, "panic…" panics in the codec; anything else can't be decoded.
type words struct{}

func (words) Decode(key string, o configsync.Object) (string, lkg.Limits, error) {
	word, ok := o.Data[key]
	if !ok {
		return "", lkg.Limits{}, fmt.Errorf("key %q is missing", key)
	}
	if strings.HasPrefix(word, "panic") {
		panic(word)
	}
	for _, prefix := range []string{"good", "crash", "sick", "invalid"} {
		if strings.HasPrefix(word, prefix) {
			return word, limitsOf(o), nil
		}
	}
	return "", lkg.Limits{}, errors.New("not a word")
}

func limitsOf(o configsync.Object) lkg.Limits {
	l := lkg.Limits{Trial: 10 * time.Minute, MinHealthyRun: time.Minute, ProbeDeadline: 2 * time.Minute}
	l.CrashLoopThreshold, _ = strconv.Atoi(o.Data["threshold"])
	if d, err := time.ParseDuration(o.Data["trial"]); err == nil {
		l.Trial, l.MinHealthyRun = d, d
	}
	return l
}

func (words) Validate(_ context.Context, word string) error {
	if strings.HasPrefix(word, "invalid") {
		return errors.New("kubelet: must not start with the prefix that means invalid")
	}
	return nil
}

func conduct(word string) configsynctest.Conduct {
	switch {
	case strings.HasPrefix(word, "crash"):
		return configsynctest.Conduct{CrashAfter: 2 * time.Second}
	case strings.HasPrefix(word, "sick"):
		return configsynctest.Conduct{Sick: errors.New("healthz says 500")}
	}
	return configsynctest.Conduct{}
}

// node is one node in memory.
type node struct {
	t         *testing.T
	server    *configsynctest.Server
	disk      *configsynctest.Disk
	rec       *configsynctest.Recorder
	child     *configsynctest.Child[string]
	conduct   func(word string) configsynctest.Conduct
	init      string // the init config; empty: none
	noSource  bool
	noProbes  bool
	source    configsync.Source // in place of the server
	reporters []configsync.Reporter
	policy    lkg.Policy
	adjust    func(*configsync.Options[string]) // what else the options have, also those of Explain
	tune      func(*configsync.Options[string]) // the last word on the options
	before    func(context.Context, configsync.Status, configsync.Change)
	syncer    *configsync.Syncer[string]
	drive     driver
	stop      func() // as a service manager stops it
	kill      func() // as kill -9 does
}

func newNode(t *testing.T) *node {
	return &node{
		t: t, server: &configsynctest.Server{}, disk: &configsynctest.Disk{}, rec: &configsynctest.Recorder{},
		conduct: conduct, init: "good-init", drive: runSyncer,
	}
}

func (n *node) options() configsync.Options[string] {
	o := configsync.Options[string]{
		Version: "v1.2.3", Key: "kubelet", Codec: words{}, Validators: []configsync.Validator[string]{words{}},
		Init: func(context.Context) (configsync.Object, error) {
			if n.init == "" {
				return configsync.Object{}, fs.ErrNotExist
			}
			return configsync.Object{Data: map[string]string{"kubelet": n.init}}, nil
		},
		Default: func() string { return "good-default" },
		Store:   n.disk, Reporter: configsync.Joined(append(n.reporters, n.rec)...), Policy: n.policy, BootID: "boot-1",
		BeforeRestart: n.before,
	}
	if !n.noSource {
		o.Source, o.Fetcher = n.server, n.server
	}
	if n.source != nil {
		o.Source = n.source
	}
	if n.adjust != nil {
		n.adjust(&o)
	}
	return o
}

// start begins the life of an agent process on the node.
func (n *node) start() {
	n.t.Helper()
	n.child = &configsynctest.Child[string]{Conduct: n.conduct}
	o := n.options()
	o.Restarter, o.Probes = n.child, []configsync.Probe{n.child}
	if n.noProbes {
		o.Probes = nil
	}
	if n.tune != nil {
		n.tune(&o)
	}
	s, err := configsync.New(n.t.Context(), o)
	if err != nil {
		n.t.Fatalf("New: %v", err)
	}
	n.syncer = s
	ctx, cancel := context.WithCancel(n.t.Context())
	n.kill = cancel
	done := make(chan error, 2)
	go func() { done <- n.child.Run(ctx, s) }()
	synctest.Wait()
	go func() { done <- n.drive(ctx, s) }()
	n.stop = func() {
		killed := ctx.Err() != nil
		if err := s.Stopping(ctx); err != nil && !killed {
			n.t.Errorf("Stopping: %v", err)
		}
		cancel()
		for range 2 {
			if err := <-done; err != nil && !killed {
				n.t.Errorf("a loop of the node ended with %v, want nil", err)
			}
		}
	}
	synctest.Wait()
}

// push creates an immutable object that holds word and names it as the wanted config.
func (n *node) push(name, word string, extra ...string) configsync.Object {
	data := map[string]string{"kubelet": word}
	for i := 0; i+1 < len(extra); i += 2 {
		data[extra[i]] = extra[i+1]
	}
	o := n.server.Put("kube-system", name, data, true)
	n.server.Name(&configsync.Spec{Namespace: o.Namespace, Name: o.Name, UID: o.UID})
	return o
}

func (n *node) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// runs fails the test unless the node runs the config of o, or the local one for the zero Object.
func (n *node) runs(o configsync.Object, rule string) {
	n.t.Helper()
	if got := n.syncer.Status().Active.UID; got != o.UID {
		n.t.Errorf("node runs UID %q, want %q: %s\nstatus: %+v", got, o.UID, rule, n.syncer.Status())
	}
}

func (n *node) condition(status lkg.Status, reason, message string) {
	n.t.Helper()
	synctest.Wait()
	got := n.rec.Last().Condition
	if want := (lkg.Condition{Status: status, Reason: reason, Message: message}); got != want {
		n.t.Errorf("reported condition is\n%+v, want\n%+v", got, want)
	}
}

// onNode runs f with a started node in a bubble, once for each driver.
func onNode(t *testing.T, f func(n *node)) {
	t.Helper()
	tuned(t, nil, f)
}

// onPromptNode is onNode for what counts reports, or is over within a second.
func onPromptNode(t *testing.T, f func(n *node)) {
	t.Helper()
	eachPromptDriver(t, func(t *testing.T, d driver) { startedNode(t, nil, d, f) })
}

func startedNode(t *testing.T, tune func(*configsync.Options[string]), d driver, f func(n *node)) {
	t.Helper()
	n := newNode(t)
	n.tune, n.drive = tune, d
	n.start()
	defer func() { n.stop() }()
	f(n)
}

// promoted brings a started node to a promoted config "good-1".
func (n *node) promoted() configsync.Object {
	n.t.Helper()
	o := n.push("v1", "good-1")
	n.wait(12 * time.Minute)
	if got := n.syncer.Status().LastKnownGood.UID; got != o.UID {
		n.t.Fatalf("last known good is UID %q after 12 minutes of health, want %q\n%+v", got, o.UID, n.syncer.Status())
	}
	return o
}
