// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/rollouttest"
)

var v1, v2 = protocol.Revision{Name: "v1", Digest: "sha256:11"}, protocol.Revision{Name: "v2", Digest: "sha256:22"}

// A world is one node with its disk, its shadow and its slot. The ops of its agent are counted, and die is asked before and after each.
type world struct {
	t       *testing.T
	shadows *rollouttest.Shadows
	disk    *disk
	node    *machine
	ledger  protocol.Ledger
	uid     string
	o       nodeagent.Options
	agent   *nodeagent.Agent

	ops int
	die func(op int, name string) bool
}

// disk is a record, of which what was not acknowledged is lost with the agent.
type disk struct {
	w             *world
	seen, durable []byte
	past          []string     // all that was acknowledged
	fault         func() error // the write is seen, and not acknowledged
	refuse        error        // nothing is written
}

// machine is a node that does what it is told, by key.
type machine struct {
	w        *world
	current  protocol.Revision
	previous protocol.Revision
	staged   protocol.Revision
	boot     int
	no       bool // there is no way back

	onApply  func(a nodeagent.Attempt) error // instead of the effect
	onRevert func(a nodeagent.Attempt) error
	health   func() (nodeagent.Health, error)
	pre      func() error
	disrupts nodeagent.Disruption // what Disruption says
	unsure   error                // likewise
	fetch    func() error

	calls   []string       // "apply key revision"
	effects map[string]int // by key and verb
	checks  int
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, shadows: &rollouttest.Shadows{}, uid: "uid-1", die: func(int, string) bool { return false }}
	w.disk = &disk{w: w}
	w.node = &machine{w: w, current: v1, boot: 1, effects: map[string]int{}, disrupts: nodeagent.DisruptionReboot}
	w.shadows.Create("n", w.uid, w.ledger)
	w.shadows.OnCall = func(op string) rollouttest.Fault {
		if op == "store" {
			w.op("before store")
		}
		return rollouttest.NoFault
	}
	w.shadows.After = func(nodeagent.Status) { w.op("after store") }
	w.o = nodeagent.Options{
		Shadows: w.shadows, Disk: w.disk, Updater: w.node,
		NodeUID: func(context.Context) (string, error) { return w.uid, nil },
	}
	w.start()
	return w
}

func (w *world) start() {
	a, err := nodeagent.New(w.o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.agent = a
}

// quiet is a context in which nothing is logged.
func quiet(t *testing.T) context.Context { return klog.NewContext(t.Context(), klog.Logger{}) }

// op is one place at which the agent can be killed.
func (w *world) op(name string) {
	w.ops++
	if w.die(w.ops, name) {
		runtime.Goexit()
	}
}

// pass is one Reconcile. An agent that was killed in it is followed by another one, with what its disk has acknowledged.
func (w *world) pass() (after time.Duration, err error) {
	done := make(chan bool, 1)
	go func() {
		killed := true
		defer func() { done <- killed }()
		after, err = w.agent.Reconcile(quiet(w.t), "n")
		killed = false
	}()
	if <-done {
		w.disk.seen = w.disk.durable
		w.start()
		return time.Second, errors.New("killed")
	}
	return after, err
}

// passes lets the agent go on until nothing is left to do before something changes, but for that long at most.
func (w *world) passes(most time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(most); time.Now().Before(end); {
		after, err := w.pass()
		switch {
		case err != nil:
			after = time.Second
		case after == 0:
			return
		}
		time.Sleep(min(after, time.Until(end)))
		synctest.Wait()
	}
}

// grant gives the node a slot, or the next attempt in it, and grants it.
func (w *world) grant(r protocol.Revision, revert bool) {
	w.t.Helper()
	var err error
	sh := w.shadows.Protocol()
	if w.ledger.Slot(sh.UID) != nil {
		w.ledger, err = w.ledger.Retry(sh, "r")
	} else {
		w.ledger, err = w.ledger.Admit(protocol.Admission{Shadow: sh, Rollout: "r"}, []protocol.Cap{{Max: 1}}, nil)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.order(func(sh protocol.Shadow) (protocol.Orders, error) {
		return sh.Give(*w.ledger.Slot(sh.UID), r.String(), revert)
	})
}

func (w *world) order(orders func(protocol.Shadow) (protocol.Orders, error)) {
	w.t.Helper()
	if err := w.shadows.Order(orders); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) proceed() {
	w.t.Helper()
	w.order(func(sh protocol.Shadow) (protocol.Orders, error) { return sh.Go(sh.Report.Attempt) })
}

func (w *world) status() nodeagent.Status      { return w.shadows.Shadow().Status }
func (w *world) phase() protocol.Phase         { return w.status().Report.Phase }
func (w *world) wantPhase(want protocol.Phase) { w.t.Helper(); w.want("phase", w.phase(), want) }
func (w *world) wantReason(want string)        { w.t.Helper(); w.want("reason", w.status().Reason, want) }
func (w *world) wantCalls(want ...string)      { w.t.Helper(); w.want("calls", w.node.calls, want) }
func (w *world) want(what string, got, want any) {
	w.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("%s: got %v, want %v; status %+v", what, got, want, w.status())
	}
}

// committed is a world in which an attempt is committed.
func committed(t *testing.T, r protocol.Revision, revert bool) *world {
	t.Helper()
	w := newWorld(t)
	w.passes(time.Minute)
	w.grant(r, revert)
	w.passes(time.Minute)
	w.wantPhase(protocol.PhaseCommitted)
	return w
}

// Get implements nodeagent.Disk.
func (d *disk) Get(context.Context, string) ([]byte, error) {
	if d.seen == nil {
		return nil, fs.ErrNotExist
	}
	return d.seen, nil
}

// Put implements nodeagent.Disk.
func (d *disk) Put(_ context.Context, stream string, payload []byte) error {
	d.w.op("before put")
	if d.refuse != nil {
		return d.refuse
	}
	d.seen = payload
	if d.fault != nil {
		if err := d.fault(); err != nil {
			return fmt.Errorf("putting %q: %w", stream, err)
		}
	}
	d.durable, d.past = payload, append(d.past, string(payload))
	d.w.op("after put")
	return nil
}

// Observe implements nodeagent.Updater.
func (m *machine) Observe(context.Context) (nodeagent.Observation, error) {
	return nodeagent.Observation{
		Current: m.current, Previous: m.previous, Staged: m.staged, BootID: fmt.Sprintf("boot-%d", m.boot), CanRevert: !m.no && m.previous.Name != "",
	}, nil
}

// Prepare implements nodeagent.Updater.
func (m *machine) Prepare(_ context.Context, r protocol.Revision) error {
	m.calls = append(m.calls, "prepare "+r.Name)
	if m.fetch != nil {
		return m.fetch()
	}
	return nil
}

// Preflight implements nodeagent.Preflighter.
func (m *machine) Preflight(context.Context, nodeagent.Attempt) error {
	if m.pre != nil {
		return m.pre()
	}
	return nil
}

// Disruption implements nodeagent.Disrupter.
func (m *machine) Disruption(context.Context, protocol.Revision, protocol.Revision) (nodeagent.Disruption, error) {
	return m.disrupts, m.unsure
}

// Apply implements nodeagent.Updater.
func (m *machine) Apply(_ context.Context, a nodeagent.Attempt) error {
	return m.change("apply", a, m.onApply)
}

// Revert implements nodeagent.Updater.
func (m *machine) Revert(_ context.Context, a nodeagent.Attempt) error {
	return m.change("revert", a, m.onRevert)
}

func (m *machine) change(verb string, a nodeagent.Attempt, instead func(nodeagent.Attempt) error) error {
	m.calls = append(m.calls, verb+" "+a.Key+" "+a.Revision.Name)
	m.wantIntent(verb, a)
	m.w.op("before " + verb)
	if instead != nil {
		if err := instead(a); err != nil || !a.Revision.Is(m.current) {
			return err
		}
	}
	m.effect(verb, a)
	m.w.op("after " + verb)
	return nil
}

// wantIntent fails unless the disk has acknowledged that the call is intended in this boot, and not yet what came of it.
func (m *machine) wantIntent(verb string, a nodeagent.Attempt) {
	now := string(m.w.disk.durable)
	back := strings.Contains(now, `"back":"boot-`+fmt.Sprint(m.boot))
	if !strings.Contains(now, `"key":"`+a.Key) || !back && !strings.Contains(now, `"phase":"Applying"`) || !back && !strings.Contains(now, `"boot":"boot-`+fmt.Sprint(m.boot)) {
		m.w.t.Errorf("%s of %s: the disk has acknowledged %s, want the intent", verb, a.Key, now)
	}
	for _, then := range m.w.disk.past {
		over := []string{`"phase":"Failed`, `"phase":"Done"`}
		if !back {
			over = append(over, `"phase":"Verifying"`)
		}
		if strings.Contains(then, `"key":"`+a.Key) && slices.ContainsFunc(over, func(o string) bool { return strings.Contains(then, o) }) {
			m.w.t.Errorf("%s of %s: the disk has acknowledged %s before, want no further call", verb, a.Key, then)
			return
		}
	}
}

// effect is what a call with a key does once.
func (m *machine) effect(verb string, a nodeagent.Attempt) {
	if m.effects[verb+" "+a.Key] == 0 {
		m.effects[verb+" "+a.Key]++
		m.previous, m.current = m.current, a.Revision
	}
}

// reboots is an Apply or Revert that never returns.
func (m *machine) reboots(verb string) func(nodeagent.Attempt) error {
	return func(a nodeagent.Attempt) error {
		m.effect(verb, a)
		m.boot++
		runtime.Goexit()
		return nil
	}
}

// Verify implements nodeagent.Updater.
func (m *machine) Verify(context.Context, nodeagent.Attempt) (nodeagent.Health, error) {
	m.checks++
	if m.health != nil {
		return m.health()
	}
	return nodeagent.Health{Verdict: nodeagent.Pass}, nil
}
