// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// A Drain cordons a node and empties it, and returns when the node is empty. It uses config for all its requests.
type Drain func(ctx context.Context, config *rest.Config, node string) error

// An Operator is a fake of one operator in one scenario.
type Operator struct {
	// Name identifies the scenario in tables, for example "kubevirt-live-migration".
	Name string
	// Source is the URL of the behaviour that the fake follows.
	Source string
	create func() fake
}

// A fake acts as an operator does. Its methods are called one after the other, but for those of its webhook.
type fake interface {
	// createObjects creates pods, budgets and webhooks.
	createObjects(ctx context.Context, c *cluster) error
	// reconcile makes one step towards what the operator wants.
	reconcile(ctx context.Context, c *cluster, v view) error
	// checkInvariant returns the promise of the operator that the view breaks, or the empty string.
	checkInvariant(v view) string
	// verifyEnd does so for a drained node.
	verifyEnd(v view) string
}

// A Row is the result of one run.
type Row struct {
	Operator string
	// Drained reports that Drain returned no error and that no running pod is on the node.
	Drained bool
	// Err is the error of Drain.
	Err error
	// Sent is the number of eviction requests without dry runs, and Refused the number of those with an error.
	Sent, Refused int
	// Deleted is the number of pods that Drain deleted without an eviction. A drain within the budgets has none.
	Deleted int
	// Took is the time that Drain took.
	Took time.Duration
	// Broken are the promises that were broken, each once: of the operator, and of the budgets.
	Broken []string
}

// List returns all operators.
func List() []Operator {
	return []Operator{
		{Name: "kubevirt-live-migration", Source: kubevirtSource, create: func() fake { return &kubevirt{} }},
		{Name: "strimzi-denies", Source: strimziSource, create: func() fake { return &strimzi{denies: true} }},
		{Name: "strimzi-annotates", Source: strimziSource, create: func() fake { return &strimzi{} }},
		{Name: "cloudnative-pg-switchover", Source: postgresSource, create: func() fake { return &postgres{} }},
		{Name: "rook-swaps-budgets", Source: rookSource, create: func() fake { return &rook{} }},
		{Name: "longhorn-instance-manager", Source: longhornSource, create: func() fake { return &longhorn{} }},
		{Name: "webhook-500", Source: webhookSource, create: func() fake { return &unreliable{} }},
		{Name: "webhook-slow", Source: webhookSource, create: func() fake { return &unreliable{slow: true} }},
		{Name: "frozen-cluster", Source: policySource, create: func() fake { return &frozen{} }},
	}
}

// The paces of a run.
const (
	stepInterval = 100 * time.Millisecond
	readyTimeout = time.Minute
)

// Run creates the scenario on a cluster, drains a node, and removes what it created. Its error is that of the cluster
// or of the fake; a failure of the drain is in the row.
func (o Operator) Run(ctx context.Context, config *rest.Config, drain Drain) (row Row, err error) {
	row.Operator = o.Name
	if o.create == nil || config == nil || drain == nil {
		return row, errors.New("operators.Operator.Run: an operator of List, a config and a drain are required")
	}
	c, err := newCluster(ctx, config)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, c.deleteObjects(context.WithoutCancel(ctx))) }()
	f := o.create()
	if err := f.createObjects(ctx, c); err != nil {
		return row, fmt.Errorf("preparing %s: %w", o.Name, err)
	}
	if err := c.awaitReady(ctx); err != nil {
		return row, fmt.Errorf("preparing %s: %w", o.Name, err)
	}
	actor := &actor{cluster: c, fake: f}
	stop := actor.start(ctx)
	counter := &counter{}
	began := time.Now()
	row.Err = drain(ctx, counter.wrapConfig(config), c.node)
	row.Took = time.Since(began)
	actErr := stop()
	row.Sent, row.Refused, row.Deleted = counter.readCounts()
	v, err := c.readView(context.WithoutCancel(ctx))
	if err != nil {
		return row, err
	}
	left := v.runningPods(func(p podView) bool { return p.Spec.NodeName == c.node })
	row.Drained = row.Err == nil && len(left) == 0
	if row.Err == nil && len(left) > 0 {
		actor.addBroken(fmt.Sprintf("the drain returned while %d pods ran on the node", len(left)))
	}
	if row.Drained {
		actor.addBroken(f.verifyEnd(v))
	}
	row.Broken = actor.broken
	return row, actErr
}

// An actor plays the kubelets and the operator.
type actor struct {
	cluster *cluster
	fake    fake
	broken  []string
	failure error
}

// start runs the actor until stop, which returns its last error.
func (a *actor) start(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(stepInterval)
		defer ticker.Stop()
		for {
			if err := a.takeStep(ctx); ctx.Err() == nil {
				a.failure = err
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	return func() error {
		cancel()
		wg.Wait()
		return a.failure
	}
}

func (a *actor) takeStep(ctx context.Context) error {
	v, err := a.cluster.readView(ctx)
	if err != nil {
		return err
	}
	a.addBroken(a.fake.checkInvariant(v))
	if err := a.cluster.playKubelets(ctx, v); err != nil {
		return err
	}
	return a.fake.reconcile(ctx, a.cluster, v)
}

func (a *actor) addBroken(promise string) {
	for _, known := range a.broken {
		if known == promise {
			return
		}
	}
	if promise != "" {
		a.broken = append(a.broken, promise)
	}
}
