// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/internal/option"
)

const (
	defaultGCAfter    = time.Hour
	defaultMaxPerPass = 100
	// deleteWithin bounds one request.
	deleteWithin = 10 * time.Second
)

// CollectorConfig is what a [Collector] does.
type CollectorConfig struct {
	// GCAfter is how long a Lease must have been quiet, counted while the view was up to date; 0 means an hour. At least twice the Liveness
	// of the view.
	GCAfter time.Duration
	// Period is the time between two passes of Run; 0 means GCAfter / 10, at least a second.
	Period time.Duration
	// MaxPerPass is how many Leases a pass deletes at most; 0 means 100.
	MaxPerPass int
	// DryRun deletes nothing and reports what would be.
	DryRun bool
	// Metrics may be the zero value.
	Metrics CollectorMetrics
}

func (c CollectorConfig) complete() CollectorConfig {
	if c.GCAfter == 0 {
		c.GCAfter = defaultGCAfter
	}
	if c.Period == 0 {
		c.Period = max(c.GCAfter/10, time.Second)
	}
	if c.MaxPerPass == 0 {
		c.MaxPerPass = defaultMaxPerPass
	}
	return c
}

func (c CollectorConfig) validate(liveness time.Duration) error {
	var errs []error
	if c.GCAfter < 2*liveness {
		errs = append(errs, fmt.Errorf("collector: GCAfter is %v, want at least twice the view's Liveness, %v", c.GCAfter, 2*liveness))
	}
	if c.Period < time.Second {
		errs = append(errs, fmt.Errorf("collector: Period is %v, want at least 1s", c.Period))
	}
	if c.MaxPerPass < 0 {
		errs = append(errs, fmt.Errorf("collector: MaxPerPass is %d, want more than 0", c.MaxPerPass))
	}
	return errors.Join(errs...)
}

// A Collector deletes the Leases of members that have been gone for long: those of its view, and no other.
type Collector struct {
	leases LeaseClient
	view   *View
	config CollectorConfig

	mu      sync.Mutex
	running bool
	ended   time.Duration // the elapsed time at which Run began, or its last pass ended without an error
	failure error         // of the last pass
	tries   tries
}

// NewCollector returns a Collector. leases must be of the namespace of the view's Leases, which is that of its canary. A Lease of another
// namespace is never deleted: the view may have some, and leases may be of a wrong one.
func NewCollector(leases LeaseClient, view *View, c CollectorConfig) (*Collector, error) {
	check := option.For("identity.NewCollector", nil)
	check.Require("leases", leases, "see client-go's CoordinationV1().Leases(namespace)")
	check.Require("view", view, "see NewView")
	if err := check.Err(); err != nil {
		return nil, err
	}
	c = c.complete()
	if err := c.validate(view.config.Liveness); err != nil {
		return nil, err
	}
	return &Collector{leases: leases, view: view, config: c}, nil
}

// Collect makes one pass. It deletes nothing while the view is not up to date or its mass-loss brake holds. Each deletion has the UID and
// the resourceVersion that were watched as precondition. A Lease that was renewed, deleted or forbidden meanwhile is in the report, and is
// no error; an error is what stopped the pass: the end of ctx, a server that does not answer, or is not able to. The report says how
// far it came.
//
// Those that are still due after a pass has tried them wait until it was the turn of all others: none that can't be deleted, however many
// they are, keeps another from it. A Lease whose epoch is ahead of the server's versions is never deleted, see [Report].Kept.
func (c *Collector) Collect(ctx context.Context) (Report, error) {
	if c.view == nil {
		return Report{}, option.NotMade("identity.Collector.Collect", "identity.NewCollector")
	}
	if c.inDoubt() {
		return Report{Stale: true}, nil
	}
	all := due(c.view.Peers(Lost), c.view.canary, c.config.GCAfter)
	all, kept := spare(all)
	turn := c.turn(all)
	report := Report{Left: len(all), Kept: kept}
	for _, p := range all[:min(len(all), c.config.MaxPerPass)] {
		if c.inDoubt() {
			return report, nil
		}
		c.tried(p, turn)
		done, err := c.collect(ctx, p)
		if err != nil {
			return report, fmt.Errorf("collecting Lease %q, quiet for %v: %w", p.Key, p.Quiet.Round(time.Second), err)
		}
		report.Leases = append(report.Leases, done)
		report.Left--
	}
	return report, nil
}

// Reconcile is [Collector.Collect] in the shape of a reconciler. The key is the namespace of the Leases; there is one. It asks to
// be called again after [CollectorConfig].Period.
func (c *Collector) Reconcile(ctx context.Context, namespace string) (requeueAfter time.Duration, err error) {
	if c.view == nil {
		return 0, option.NotMade("identity.Collector.Reconcile", "identity.NewCollector")
	}
	if own := c.view.canary.Namespace; namespace != own {
		return 0, fmt.Errorf("collecting Leases of namespace %q: this collector is that of namespace %q", namespace, own)
	}
	_, err = c.Collect(ctx)
	return c.config.Period, err
}

// inDoubt says whether the view may be wrong about who is lost.
func (c *Collector) inDoubt() bool {
	f := c.view.Freshness()
	return !f.Fresh || f.Held > 0
}

// collect deletes one Lease, and says what came of it. An error stops the pass.
func (c *Collector) collect(ctx context.Context, p Peer) (CollectedLease, error) {
	done := CollectedLease{Key: p.Key, UID: p.Lease.UID, Holder: p.Holder, Quiet: p.Quiet, Outcome: WouldCollect}
	if !c.config.DryRun {
		err := c.delete(ctx, p)
		outcome, stop := outcomeOf(err, p.Lease)
		if stop {
			return CollectedLease{}, err
		}
		if done.Outcome = outcome; outcome == Refused {
			done.Err = err
		}
	}
	if c.config.Metrics.Collected != nil {
		c.config.Metrics.Collected(done.Outcome)
	}
	klog.FromContext(ctx).V(2).Info("Collected a Lease", "lease", klog.KRef(p.Key.Namespace, p.Key.Name), "outcome", done.Outcome, "quiet", p.Quiet)
	return done, nil
}

// delete deletes the version of the Lease that was watched.
func (c *Collector) delete(ctx context.Context, p Peer) error {
	ctx, cancel := context.WithTimeout(ctx, deleteWithin)
	defer cancel()
	return c.leases.Delete(ctx, p.Key.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &p.Lease.UID, ResourceVersion: &p.Lease.ResourceVersion},
	})
}

// outcomeOf says what the answer to a deletion of a Lease means, and whether to ask for no other now.
func outcomeOf(err error, lease *coordinationv1.Lease) (outcome CollectOutcome, stop bool) {
	var status apierrors.APIStatus
	switch {
	case err == nil && len(lease.Finalizers) > 0:
		return Finalizing, false
	case err == nil:
		return Collected, false
	case absent(err):
		return Gone, false
	case apierrors.IsConflict(err):
		return Renewed, false
	case !errors.As(err, &status):
		return "", true // no answer
	}
	code := status.Status().Code
	return Refused, code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || code == http.StatusUnauthorized
}

// Run makes a pass each Period until ctx ends. Errors are logged and tried again at the next pass.
func (c *Collector) Run(ctx context.Context) error {
	if c.view == nil {
		return option.NotMade("identity.Collector.Run", "identity.NewCollector")
	}
	if err := c.start(); err != nil {
		return err
	}
	defer c.stop()
	for c.pause(ctx) {
		report, err := c.Collect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "Collection of Leases was stopped", "left", report.Left)
		}
		c.note(err)
	}
	return nil
}

// pause waits for a period and says whether ctx goes on.
func (c *Collector) pause(ctx context.Context) bool {
	timer, stop := c.view.clock.Timer(c.config.Period)
	defer stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer:
		return ctx.Err() == nil
	}
}

func (c *Collector) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		return fmt.Errorf("collector: %w", ErrRunning)
	}
	c.running, c.ended, c.failure = true, c.view.clock.Elapsed(), nil
	return nil
}

func (c *Collector) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
}

// note keeps how a pass has ended.
func (c *Collector) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure = err; err == nil {
		c.ended = c.view.clock.Elapsed()
	}
}

// Healthy returns nil if Run runs and one of its passes has ended without an error in the last two periods, or it began in these. A pass
// that deleted nothing because the view was not up to date counts: see [View.Healthy].
func (c *Collector) Healthy() error {
	if c.view == nil {
		return option.NotMade("identity.Collector.Healthy", "identity.NewCollector")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ago := c.view.clock.Elapsed() - c.ended
	switch {
	case !c.running:
		return errors.New("collector: it does not run")
	case ago <= 2*c.config.Period:
		return nil
	case c.failure != nil:
		return fmt.Errorf("collector: no pass was good for %v: %w", ago, c.failure)
	}
	return fmt.Errorf("collector: no pass has ended for %v", ago)
}
