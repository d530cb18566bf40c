// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/examples/agent/internal/admin"
	"github.com/belayproject/belay/examples/agent/internal/node"
	"github.com/belayproject/belay/examples/agent/internal/wire"
	"github.com/belayproject/belay/examples/internal/agent/drift"
	"github.com/belayproject/belay/examples/internal/agent/history"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/examples/internal/agent/update"
	"github.com/belayproject/belay/lkg"
)

// stopTimeout bounds the record of a planned stop: a disk that hangs must not keep the agent from ending.
const stopTimeout = 5 * time.Second

// A firstChoice is made once the first start has chosen a config.
type firstChoice struct {
	done chan struct{} // closed then
	once sync.Once
}

// An agent is the parts of one run.
type agent struct {
	s          *settings.Run
	own        *parts
	log        klog.Logger
	file       *drift.Watch      // what the child reads
	store      *checkpoint.Store // nil without a state directory that can be used
	trouble    *trouble
	options    node.Options
	syncer     *configsync.Syncer[*kubelet.Config]
	part       *update.Part // nil where the node takes no part in rollouts
	supervisor *restart.Supervisor
	journal    *history.Journal // nil where none is kept
	teller     *history.Teller  // nil where nobody is told
	child      *childLife
	started    time.Time
	inUse      atomic.Pointer[kubelet.Config]
	before     lkg.Exit // how the last run of this agent's unit ended, for the first start of the child
	first      firstChoice
}

// run supervises the child until ctx ends or the agent is asked to stop. It owns the state directory meanwhile.
func run(ctx context.Context, s *settings.Run, own *parts) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	a := &agent{
		s: s, own: own, log: klog.FromContext(ctx), started: time.Now(), trouble: newTrouble(),
		first: firstChoice{done: make(chan struct{})}, child: newChildLife(),
	}
	if a.trouble.off = s.SwitchedOff(); a.trouble.off != "" {
		a.log.Info("Source is not looked at", "source", s.Source, "why", a.trouble.off)
	}
	if err := a.openStore(); err != nil {
		return err
	}
	if a.store != nil {
		defer func() { err = errors.Join(err, a.store.Close()) }()
		a.child.store = a.store
		a.lastExit(ctx)
	}
	if err := a.join(ctx); err != nil {
		return err
	}
	a.log.Info("Started agent", "version", settings.Version(), "node", s.NodeName, "source", s.Source, "child", s.Child)
	return a.serve(ctx)
}

// openStore opens the state directory. Where that can't be, as on the first start on a disk that is full or read-only,
// the child still runs, with the local config, and the node says why; but a directory that another agent uses ends this
// one.
func (a *agent) openStore() (err error) {
	if a.s.StateDir == "" {
		return nil
	}
	a.store, err = checkpoint.Open(a.s.StateDir, checkpoint.Options{
		OnDamage: func(d checkpoint.Damage) { a.log.Error(&d, "Set a record aside", "stateDir", a.s.StateDir) },
	})
	if errors.Is(err, checkpoint.ErrLocked) {
		return fmt.Errorf("opening the state directory: %w", err)
	}
	if err != nil {
		a.store, a.trouble.records = nil, err
		a.log.Error(err, "State directory can't be used, using the local config until a restart", "stateDir", a.s.StateDir)
	}
	return nil
}

// lastExit asks what the unit's commands have noted about the run before.
func (a *agent) lastExit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	exit, err := node.LastExit(ctx, a.s.StateDir)
	if err != nil {
		a.log.Error(err, "Not all is known about the end of the last run")
	}
	a.before = exit
	if exit.Kind == lkg.ExitCounted {
		return
	}
	end, found, err := a.child.recallEnd(ctx)
	if err != nil {
		a.log.Error(err, "Not all is known about the end of the last child")
	}
	if found {
		a.before = end
	}
}

// join makes the syncer and the supervisor, each of which needs the other.
func (a *agent) join(ctx context.Context) (err error) {
	witness, err := wire.NewWitness(a.s, a.inUse.Load, func() int { return a.supervisor.PID() })
	if err != nil {
		return err
	}
	a.supervisor, err = restart.NewSupervisor(restart.Options{
		Command: a.prepare, Grace: a.s.Grace, BackoffMin: a.s.BackoffMin, BackoffMax: a.s.BackoffMax,
		Attribute: witness.AttributeExit,
		OnExit: func(e lkg.Exit, planned bool) {
			a.log.Info("Child ended", "how", e.Detail, "planned", planned)
			if !planned {
				a.child.noteEnd(e, time.Now())
			}
		},
	})
	if err != nil {
		return err
	}
	var store configsync.Store
	if a.store != nil { // a nil *checkpoint.Store would be a store
		store = a.store
	}
	if a.options, err = wire.Options(a.s, store, a.supervisor, a.inUse.Load, witness); err != nil {
		return err
	}
	if a.store == nil {
		a.options.Source, a.options.Fetcher = nil, nil // no config is adopted that could not be left
	}
	if err := a.writeDown(ctx); err != nil {
		return err
	}
	if err := a.openFile(ctx, store); err != nil {
		return err
	}
	a.options.Reporter = a.trouble.reporter(a.options.Reporter)
	return a.enlist(ctx)
}

// serve runs all parts until ctx ends, and the child last: its stop is on record as planned before it is stopped.
func (a *agent) serve(ctx context.Context) error {
	childCtx, stopChild := context.WithCancel(context.WithoutCancel(ctx))
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer stopChild()
		err := a.sync(ctx)
		a.stopping(ctx)
		return err
	})
	g.Go(func() error {
		err := a.supervisor.Run(childCtx)
		if err == nil {
			a.stopping(ctx) // again, in case that a start came between the record and the stop
		}
		return err
	})
	g.Go(func() error { a.takePart(ctx); return nil })
	g.Go(func() error { a.checkUnit(ctx); return nil })
	g.Go(func() error { a.measure(ctx); return nil })
	g.Go(func() error { a.tell(ctx); return nil })
	g.Go(func() error { a.look(ctx); return nil })
	g.Go(func() error { a.keepEnds(ctx); return nil })
	if a.store != nil {
		g.Go(func() error {
			if err := a.administer(ctx); err != nil {
				a.log.Error(err, "Sub-commands can't reach this agent")
			}
			return nil // a node without them is better than none
		})
	}
	return g.Wait()
}

// sync keeps the node at the wanted config from the first start on.
func (a *agent) sync(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-a.first.done:
		return a.syncer.Run(ctx)
	}
}

// administer lets the sub-commands in until ctx ends. A socket that can't be opened, as on a disk that is full or
// read-only, is tried again: the child goes on without it.
func (a *agent) administer(ctx context.Context) error {
	for retry := a.s.Retry(); ; {
		if err := a.serveAdmin(ctx); err != nil {
			a.log.Error(err, "Sub-commands can't reach this agent", "stateDir", a.s.StateDir)
		}
		if !retry.Wait(ctx) {
			return nil
		}
	}
}

func (a *agent) serveAdmin(ctx context.Context) error {
	socket, err := admin.Listen(a.s.StateDir)
	if err != nil {
		return err
	}
	return socket.Run(ctx, &node.Live{
		Name: a.s.NodeName, Source: a.s.Source, Started: a.started, Child: a.supervisor.PID, LastEnd: a.child.lastEnd,
		Notes: a.statusNotes(), Records: a.store, Options: a.options, Syncer: a.syncer, Amend: a.trouble.amend,
	})
}

// statusNotes are what a person should look at in how the agent is set up.
func (a *agent) statusNotes() []string {
	if ignored := a.s.IgnoredInit(); len(ignored) > 0 {
		return []string{fmt.Sprintf("the init directory %s has files that are not read: %q", a.s.InitConfig, ignored)}
	}
	return nil
}

// stopping records that the next start was planned. ctx has ended.
func (a *agent) stopping(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := a.syncer.Stopping(ctx); err != nil {
		a.log.Error(err, "Stop is not on record, and may count against a config on trial")
	}
}

// prepare is one start of the child: the start goes on record, a config is chosen from disk, the node says so, and the
// child finds it where it reads it.
func (a *agent) prepare(ctx context.Context, last lkg.Exit) (*exec.Cmd, error) {
	if last.Kind == "" && last.Detail == "" { // the first child
		last, a.before = a.before, last
	}
	if err := a.bootstrap(ctx, last); err != nil {
		a.refused(ctx, err)
		return nil, err
	}
	if err := a.syncer.Announce(ctx); err != nil {
		a.log.Error(err, "Config is not announced yet, starting all the same")
	}
	if err := a.trouble.inTheWay(); err != nil {
		a.log.Error(err, "Child can't be started, trying again")
		a.stopping(ctx) // what is in the way is no fault of the config
		return nil, err
	}
	cmd := exec.Command(a.s.Child[0], a.s.Child[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd, nil
}

// bootstrap chooses a config and makes it ready. Its error is a refusal; what is merely in the way of the start is in
// a.trouble.
func (a *agent) bootstrap(ctx context.Context, last lkg.Exit) error {
	var inTheWay error
	a.trouble.hold()
	defer func() { a.trouble.release(inTheWay) }()
	active, err := a.syncer.Bootstrap(ctx, last)
	if err != nil {
		return err
	}
	a.log.Info("Chose config", "message", active.Verdict.Condition.Message, "reason", active.Verdict.Condition.Reason,
		"detail", active.Verdict.Detail, "uid", active.Ref.UID, "digest", active.Ref.Digest, "onTrial", active.Verdict.OnTrial)
	a.child.beginLife(ctx)
	a.inUse.Store(active.Config)
	a.first.once.Do(func() { close(a.first.done) })
	inTheWay = a.ready(ctx, active, last)
	return nil
}

// ready renders the config, moves what would stop the kubelet out of its way, and sees that there is a program to read
// it.
func (a *agent) ready(ctx context.Context, active configsync.Active[*kubelet.Config], last lkg.Exit) (err error) {
	if err := wire.Put(ctx, a.file, a.options, active); err != nil {
		return err
	}
	files := a.s.StateFiles()
	if last.Kind != lkg.ExitPlanned && last.Kind != lkg.ExitCounted {
		files.Last = last.Last
	}
	if err := wire.PrepareState(ctx, a.log, files, a.options, active.Config); err != nil {
		return err
	}
	_, err = exec.LookPath(a.s.Child[0])
	return err
}

// refused tells the node's condition why nothing is started.
func (a *agent) refused(ctx context.Context, err error) {
	a.log.Error(err, "No config may be used")
	status, ok := wire.Refusal(ctx, a.options)
	if !ok || a.options.Reporter == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := a.options.Reporter.Report(ctx, status); err != nil {
		a.log.Error(err, "Refusal is not reported")
	}
}
