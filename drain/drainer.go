// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Options are the parts of a [Drainer]. Cache and Client are required.
type Options struct {
	Cache  Cache
	Client Client
	// Scheduler is shared by the Drainers of a process; nil means one with the zero options.
	Scheduler *Scheduler
	// Responders are asked by the names that rules and pods give. A pod that names an unknown one is blocked.
	Responders map[string]Responder
	// Leases is needed for Hold.
	Leases LeaseKeeper
	// Heartbeat, when set, says whether the agent on a held node still gives signs of life of its own. A hold ends when it has not.
	Heartbeat func(ctx context.Context, node string) (bool, error)
	// PoweredOff proves that the machine of a node is off. Without it StepOutOfService is never taken.
	PoweredOff func(ctx context.Context, node *corev1.Node) (bool, error)
	// Fits goes into every snapshot.
	Fits func(pod *corev1.Pod) (ok bool, why string)
	// NodeConditions also writes the conditions of KEP-5683 to the Node's status: two writes more for a maintenance.
	NodeConditions bool
	// Recorder gets an event on each edge; nil means none.
	Recorder Recorder
	Metrics  Metrics
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// A Drainer carries out requests. Make one with [New].
type Drainer struct {
	o Options
}

var errNotYet = errors.New("not built yet")

// New checks the options and returns a Drainer.
func New(o Options) (*Drainer, error) { return &Drainer{o: o}, errNotYet }

// Reconcile is one bounded pass over one node. It returns what it found and did, and after how long to call again at the latest: zero
// means that only a change (see [Drainer.Watch]) or a new request can matter. An error means that the pass could not run; blocked
// pods are status. The status is valid with an error too.
func (d *Drainer) Reconcile(ctx context.Context, r Request) (Status, time.Duration, error) {
	return Status{}, 0, errNotYet
}

// Plan is the dry run: what a drain of these nodes under the policy would decide now. It reads the cache and makes no request.
func (d *Drainer) Plan(policy Policy, nodes ...string) (Result, error) { return Result{}, errNotYet }

// Watch calls changed, until stop is called, with the name of a node whose drain has reason to be reconciled before its time. It must
// not block.
func (d *Drainer) Watch(changed func(node string)) (stop func()) { return func() {} }

// Resume ends the freeze of a holder's fleet: it takes the marks off the nodes that went bad after their return.
func (d *Drainer) Resume(ctx context.Context, holder string) error { return errNotYet }
