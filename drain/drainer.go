// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/internal/option"
)

// Options are the parts of a [Drainer]. Cache and Client are required.
type Options struct {
	Cache  Cache
	Client Client
	// Scheduler is shared by the Drainers of a process; nil means one with the zero options.
	Scheduler *Scheduler
	// Responders are asked by the names that rules and pods give. A pod that names an unknown one is blocked. A
	// [PodResponder] among them finds its pods by itself.
	Responders map[string]Responder
	// Leases is needed for Hold.
	Leases LeaseKeeper
	// Heartbeat, when set, says whether the agent on a held node still gives signs of life of its own. A hold ends when
	// it has not. A call that has not returned after 5 s is no answer, and no other is made about that node for that
	// holder before it returns; the same goes for PoweredOff.
	Heartbeat func(ctx context.Context, node string) (bool, error)
	// PoweredOff proves that the machine of a node is off. Without it StepOutOfService is never taken.
	PoweredOff func(ctx context.Context, node *corev1.Node) (bool, error)
	// Fits goes into every snapshot.
	Fits func(pod *corev1.Pod) (ok bool, why string)
	// NodeConditions also writes the conditions of KEP-5683 to the Node's status: DrainInProgress, Drained and
	// MaintenanceInProgress, two writes more for a maintenance; and MaintenancePlanned while a node waits for a window or
	// for its place in a set, one more for each. They are removed with the last release.
	NodeConditions bool
	// Recorder gets an event on each edge; nil means none.
	Recorder Recorder
	Metrics  Metrics
	// Requests says what is wanted of a node, for [Drainer.Reconcile]; wanted is false where nothing is. Ask for
	// [Release] until the Status is [Released]: a node that is no longer wanted stays as it is.
	Requests func(ctx context.Context, node string) (request Request, wanted bool, err error)
	// Report takes the Status of each pass of [Drainer.Reconcile]. An error makes that pass an error. Nil means that
	// nothing keeps it.
	Report func(ctx context.Context, status Status) error
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// A Drainer carries out requests. Make one with [New].
type Drainer struct {
	o         Options
	scheduler *Scheduler
	registry  *registry
}

// New checks the options and returns a Drainer. It wraps [ErrOption] where they can't be used.
func New(o Options) (*Drainer, error) {
	check := option.For("drain.New", ErrOption)
	check.Require("Options.Cache", o.Cache, "see drain/kube.NewCache")
	check.Require("Options.Client", o.Client, "see drain/kube.NewClient")
	for _, name := range sortedKeys(o.Responders) {
		if name == "" {
			check.Wrong("Options.Responders has an empty name: use the name that pods and rules give")
		}
		check.Require(fmt.Sprintf("Options.Responders[%q]", name), o.Responders[name], "see drain/kube.NewEvictionRequester")
	}
	if err := check.Err(); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Client = strictClient{o.Client}
	d := &Drainer{o: o, scheduler: o.Scheduler, registry: newRegistry()}
	if d.scheduler == nil {
		var err error
		if d.scheduler, err = NewScheduler(SchedulerOptions{Now: o.Now}); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Reconcile is one bounded pass over one node: it asks [Options].Requests what is wanted, does it as
// [Drainer.ReconcileRequest] does, and gives the result to [Options].Report. requeueAfter is when to call again at the
// latest; zero means that only a change (see [Drainer.Watch]) or a new request can matter. With an error, call again
// after a back-off. The error wraps [ErrNodeNotFound] where something is wanted of a Node that does not exist, or is
// another one than the request's: the request stands until the embedder withdraws it.
func (d *Drainer) Reconcile(ctx context.Context, node string) (requeueAfter time.Duration, err error) {
	if d == nil || d.registry == nil {
		return 0, option.NotMade("drain.Drainer.Reconcile", "drain.New")
	}
	if d.o.Requests == nil {
		check := option.For("drain.Drainer.Reconcile", ErrOption)
		check.Require("Options.Requests", nil, "it says what is wanted of a node; or call ReconcileRequest")
		return 0, check.Err()
	}
	r, wanted, err := d.o.Requests(ctx, node)
	if err != nil {
		return 0, fmt.Errorf("looking up the request for node %q: %w", node, err)
	}
	if !wanted {
		return 0, nil
	}
	r.Node = node
	st, after, err := d.ReconcileRequest(ctx, r)
	if err == nil {
		err = missingNode(st)
	}
	if d.o.Report != nil {
		if reported := d.o.Report(ctx, st); reported != nil {
			err = errors.Join(err, fmt.Errorf("reporting the status of node %q: %w", node, reported))
		}
	}
	return after, err
}

// ReconcileRequest is one bounded pass over one node. It returns what it found and did, and after how long to call
// again at the latest: zero means that only a change (see [Drainer.Watch]) or a new request can matter. An error means
// that the pass could not run; blocked pods are status, and so is a Node that does not exist: [Failed] for
// [NodeNotFound]. The status is valid with an error too. When ctx ends, no further eviction starts, those under way are
// waited for, and ctx's error is returned.
func (d *Drainer) ReconcileRequest(ctx context.Context, r Request) (Status, time.Duration, error) {
	if d == nil || d.registry == nil {
		return Status{}, 0, option.NotMade("drain.Drainer.ReconcileRequest", "drain.New")
	}
	st := Status{Node: r.Node, Holder: r.Holder, Maintenance: r.Maintenance, Mode: r.Mode, Phase: Pending}
	if err := r.Validate(); err != nil {
		return st, 0, err
	}
	if r.Mode == Hold && d.o.Leases == nil {
		return st, 0, fmt.Errorf("holding node %q: Options.Leases must be set: %w", r.Node, ErrOption)
	}
	leave, err := d.registry.admit(ctx, r)
	if err != nil {
		return st, 0, err
	}
	defer leave()
	now := d.o.Now()
	d.registry.listen(key{r.Node, r.Holder})
	p := &pass{d: d, r: r, now: now, memory: d.registry.recall(r), st: st}
	err = p.run(ctx)
	d.registry.await(key{r.Node, r.Holder}, p.budgets)
	if p.st.Evicted == nil {
		p.st.Evicted, p.st.Forced = slices.Clone(p.memory.evicted), slices.Clone(p.memory.forced)
	}
	p.report(d.o.Now().Sub(now))
	if err != nil && p.after == 0 {
		p.ask(firstFallback)
	}
	return p.st, p.after, err
}

// Watch calls changed, until stop is called, with the name of a node whose drain has reason to be reconciled before its
// time. It must not block.
func (d *Drainer) Watch(changed func(node string)) (stop func()) {
	if d == nil || d.registry == nil {
		return func() {}
	}
	off := d.registry.watch(changed)
	stopCache := d.o.Cache.Watch(d.registry.changed)
	return func() {
		if stopCache != nil {
			stopCache()
		}
		off()
	}
}

// resumed ends a freeze: the entry of a node that was given back goes, that of one that is held again stays.
func resumed(m mark, name string) nodeChange {
	h := *m.of(name)
	if !h.Released.IsZero() {
		return nodeChange{mark: m.without(name)}
	}
	h.Frozen = ""
	return nodeChange{mark: m.with(h)}
}

// Resume ends the freeze of a holder's fleet: it takes the marks off the nodes that went bad after their return. Those
// that could not be written are in the error; calling it again goes on with them.
func (d *Drainer) Resume(ctx context.Context, holder string) error {
	if d == nil || d.registry == nil {
		return option.NotMade("drain.Drainer.Resume", "drain.New")
	}
	var errs []error
	for _, node := range d.o.Cache.Nodes() {
		if _, ok := node.Annotations[MarkAnnotation]; !ok {
			continue
		}
		m, err := markOf(node)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if h := m.of(holder); h == nil || h.Frozen == "" {
			continue
		}
		patch, err := resumed(m.withOwner(node), holder).patch(node)
		if err == nil {
			_, err = d.o.Client.PatchNode(ctx, node.Name, patch, false)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("resuming after node %q: %w", node.Name, err))
		}
	}
	return errors.Join(errs...)
}
