// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
)

// Tracker is what a Machine drives. [*lkg.Tracker] is one.
type Tracker interface {
	Start(ctx context.Context, e lkg.Exit) error
	Decide(ctx context.Context, limits func(lkg.Ref) lkg.Limits, check func(lkg.Ref) lkg.Check) (lkg.Verdict, error)
	Assign(ctx context.Context, r lkg.Ref) error
	PlanRestart(ctx context.Context, kind lkg.Cause) error
	Reset(ctx context.Context) error
	SetDesired(ctx context.Context, o lkg.Outcome) error
	Healthy(ctx context.Context, h lkg.Health) (lkg.Progress, error)
	Forget(ctx context.Context, uid string) error
	Reject(ctx context.Context, r lkg.Ref, reason string) error
	Promote(ctx context.Context) error
	State() lkg.State
}

var _ Tracker = (*lkg.Tracker)(nil)

// Options of a Machine. The zero value is usable.
type Options struct {
	// Open makes the tracker at the start of each process. Nil: lkg.NewTracker.
	Open func(ctx context.Context, s lkg.Store, o lkg.Options) (Tracker, error)
	// Check answers for every config, lkg.Ref{} being the local baseline. Nil: everything is OK.
	Check func(lkg.Ref) lkg.Check
	// Limits of every config. Nil: the zero Limits.
	Limits func(lkg.Ref) lkg.Limits
	// Version of the agent. Empty: "v1".
	Version string
	// Policy of the decisions.
	Policy lkg.Policy
	// Filter of the machine's store, see [Store].
	Filter func(stream string, payload []byte) (kept []byte, drop bool)
}

// A Machine is a simulated node. Every method checks the rules of package lkg and reports a broken one to t.
type Machine struct {
	// Store is the machine's disk.
	Store *Store
	// Version of the agent that the next process has.
	Version string

	t      testing.TB
	o      Options
	wall   time.Time
	boot   int
	ids    int
	tr     Tracker
	exit   lkg.Exit
	v      lkg.Verdict
	up     bool // a run is going on
	ledger ledger
}

// NewMachine gives a machine with an empty disk, before its first start.
func NewMachine(t testing.TB, o Options) *Machine {
	if o.Check == nil {
		o.Check = func(lkg.Ref) lkg.Check { return lkg.Check{Outcome: lkg.CheckOK} }
	}
	if o.Limits == nil {
		o.Limits = func(lkg.Ref) lkg.Limits { return lkg.Limits{} }
	}
	if o.Open == nil {
		o.Open = func(ctx context.Context, s lkg.Store, o lkg.Options) (Tracker, error) {
			return lkg.NewTracker(ctx, s, o)
		}
	}
	if o.Version == "" {
		o.Version = "v1"
	}
	m := &Machine{
		t: t, o: o, Store: NewStore(), Version: o.Version, wall: time.Unix(1_700_000_000, 0), ledger: newLedger(),
	}
	m.Store.Filter = o.Filter
	m.Store.onStop = func() { panic(errKilled) }
	return m
}

// errKilled unwinds a process that dies at a write. UntilKilled recovers it.
var errKilled = errors.New("killed at a write")

// Tracker is that of the running process, which is started if there is none.
func (m *Machine) Tracker() Tracker {
	m.t.Helper()
	if m.tr == nil {
		tr, err := m.o.Open(m.t.Context(), m.Store, lkg.Options{
			Version: m.Version, BootID: fmt.Sprintf("boot-%d", m.boot), Policy: m.o.Policy,
			Now: func() time.Time { return m.wall },
			ID:  func() string { m.ids++; return fmt.Sprintf("id-%d", m.ids) },
		})
		if err != nil {
			m.t.Fatalf("opening the tracker: %v (rule: a record that can not be read never stops an agent)", err)
		}
		m.tr = tr
	}
	return m.tr
}

// Start starts the configured thing: it records the start, decides, and gives the verdict. A run that was still going
// on counts as crashed.
func (m *Machine) Start() lkg.Verdict {
	m.t.Helper()
	if m.up {
		m.Crash()
	}
	m.wall = m.wall.Add(time.Second)
	tr := m.Tracker()
	m.expect("Start", tr.Start(m.t.Context(), m.exit))
	v, err := tr.Decide(m.t.Context(), m.o.Limits, m.o.Check)
	var refused *lkg.BaselineError
	if !errors.As(err, &refused) {
		m.expect("Decide", err)
	}
	m.v, m.up, m.exit = v, v.Refuse == nil, lkg.Exit{}
	m.ledger.decided(m, v, err == nil)
	return v
}

// expect lets the errors of a stopped store pass, and the answers to a request that does not fit the situation.
func (m *Machine) expect(op string, err error) {
	m.t.Helper()
	for _, allowed := range []error{nil, ErrStopped, fs.ErrNotExist, lkg.ErrRejected, lkg.ErrNotRunning} {
		if errors.Is(err, allowed) {
			return
		}
	}
	m.t.Errorf("%s: %v (rule: only the store may fail)", op, err)
}

// Crash ends the run badly. The process with the tracker lives on, as a supervisor does.
func (m *Machine) Crash() { m.End(lkg.Exit{Kind: lkg.ExitCrash, Detail: "exit status 255"}) }

// End ends the run in a way that the next start is told of. An end with a fault is not by the config; with
// [lkg.FaultSupervisor] the process that has the tracker dies too.
func (m *Machine) End(e lkg.Exit) {
	if e.Fault == "" {
		m.ledger.crashed(m)
	}
	if e.Fault == lkg.FaultSupervisor {
		m.tr = nil
	}
	m.up, m.exit = false, e
}

// Kill ends the process with its tracker, and the run with it. Nobody knows how it ended.
func (m *Machine) Kill() {
	m.ledger.crashed(m)
	m.tr, m.up, m.exit = nil, false, lkg.Exit{}
}

// Reboot ends everything and brings a new boot.
func (m *Machine) Reboot() {
	m.boot++
	m.ledger.excused()
	m.tr, m.up, m.exit = nil, false, lkg.Exit{}
}

// Step moves the wall clock, in either direction.
func (m *Machine) Step(d time.Duration) { m.wall = m.wall.Add(d) }

// Adopt assigns a config, plans the restart and ends the process. The next Start uses the config.
func (m *Machine) Adopt(r lkg.Ref) {
	m.t.Helper()
	m.Do("Assign", func(ctx context.Context, tr Tracker) error { return tr.Assign(ctx, r) })
	m.Restart(lkg.CauseAdoption)
}

// Restart plans a restart and ends the process.
func (m *Machine) Restart(kind lkg.Cause) {
	m.t.Helper()
	planned := m.Do("PlanRestart", func(ctx context.Context, tr Tracker) error { return tr.PlanRestart(ctx, kind) })
	if planned {
		m.ledger.excused()
	} else {
		m.ledger.crashed(m)
	}
	m.tr, m.up, m.exit = nil, false, lkg.Exit{Kind: lkg.ExitClean}
}

// Do makes one call to the tracker and checks the rules. It reports whether the call did what it says.
func (m *Machine) Do(op string, call func(context.Context, Tracker) error) bool {
	m.t.Helper()
	err := call(m.t.Context(), m.Tracker())
	m.expect(op, err)
	m.ledger.durable(m, op)
	return err == nil
}

// Healthy lets the run be healthy for d, with a report every ten seconds, and gives the last answer. Nobody reports
// about a run that is over.
func (m *Machine) Healthy(d time.Duration) lkg.Progress { return m.report(d, nil) }

// Failing lets a required probe fail for d.
func (m *Machine) Failing(d time.Duration) lkg.Progress {
	return m.report(d, []lkg.ProbeResult{{Name: "ready", Required: true, Err: errors.New("not ready")}})
}

func (m *Machine) report(d time.Duration, probes []lkg.ProbeResult) (p lkg.Progress) {
	m.t.Helper()
	for d > 0 && m.up {
		elapsed := min(d, 10*time.Second)
		d -= elapsed
		m.wall = m.wall.Add(elapsed)
		if probes == nil {
			m.ledger.healthy(m, elapsed)
		}
		m.Do("Healthy", func(ctx context.Context, tr Tracker) (err error) {
			p, err = tr.Healthy(ctx, lkg.Health{Elapsed: elapsed, Probes: probes})
			m.ledger.judged(p, err == nil)
			return err
		})
	}
	return p
}

// Damage makes a record unreadable and ends the process. What the record remembered is lost: a bad config may be tried
// again, a count begins anew. What is used must be good all the same.
func (m *Machine) Damage(stream string) {
	m.t.Helper()
	m.Kill()
	m.Store.Damage(stream, errors.New("record is damaged"))
	m.ledger.lost()
	m.ledger.durable(m, "damage")
}

// Forget forgets a config, on a person's word.
func (m *Machine) Forget(r lkg.Ref) {
	m.t.Helper()
	m.ledger.forgotten(r) // also if the call is cut off: it may have come into effect
	m.Do("Forget", func(ctx context.Context, tr Tracker) error { return tr.Forget(ctx, r.UID) })
}

// Promote promotes the running config, on a person's word.
func (m *Machine) Promote() {
	m.t.Helper()
	m.ledger.bless(m.ledger.state.Current.Ref)
	m.Do("Promote", func(ctx context.Context, tr Tracker) error { return tr.Promote(ctx) })
}

// Check reports a broken rule.
func (m *Machine) Check(ok bool, format string, args ...any) {
	m.t.Helper()
	if !ok {
		m.t.Errorf(format, args...)
	}
}
