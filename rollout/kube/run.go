// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// ControllerOptions are those of [RunController]. Domain is required, and so is Controller.Drainer where revisions need one.
type ControllerOptions struct {
	// Domain is the name of the disruption domain: spec.domain of its Rollouts.
	Domain string
	// Controller has the Drainer, the gates, the caps and the hooks of the controller. RunController makes its Ledger, Rollouts,
	// Fleet, Shadows and Health where they are nil.
	Controller controller.Options
	// Drains wakes the controller when a drain may go on before its time; drain.Drainer is one. Nil means that it looks again when
	// the drain has asked for it.
	Drains Drains
	// Nodes selects the Nodes of the domain, of which the percentages of its rollouts are. Nil means all.
	Nodes labels.Selector
	// Caches are those that several domains of a process share; their owner runs them. Nil means that RunController makes and runs its own
	// by CachesOptions.
	Caches        *Caches
	CachesOptions CachesOptions
	// Lead calls work while this process leads, and again when it leads again: identity.Elect makes one. Nil means that it always leads.
	// Leader election saves work. The caps hold with any number of leaders.
	Lead func(ctx context.Context, work func(context.Context) error) error
}

// Drains reports changes of drains by the name of the Node: drain.Drainer is one.
type Drains interface {
	// Watch calls changed, which does not block, until stop is called.
	Watch(changed func(node string)) (stop func())
}

// RunController carries out the rollouts of one disruption domain until ctx ends; then it returns nil. It watches the cluster,
// waits until the caches have synced, waits until it leads, and runs a [controller.Controller]. An error means that it can't go on:
// an option is missing, or an informer was not started, drops a field, selects too little or has stopped. Errors of the API server are logged and tried again.
//
// The definitions have to be installed, see [Install], and the process takes [ControllerRules] and [HealthRules].
func RunController(ctx context.Context, config *rest.Config, o ControllerOptions) error {
	check := checkerFor("RunController")
	check.Require("ControllerOptions.Domain", o.Domain, domainRemedy)
	if o.Caches == nil {
		check.Require("config", config, configRemedy)
	}
	if err := check.Err(); err != nil {
		return err
	}
	caches := o.Caches
	if caches == nil {
		var err error
		if caches, err = NewCaches(config, o.CachesOptions); err != nil {
			return err
		}
	}
	ledger, err := NewLedgerStore(caches.Client, o.Domain)
	if err != nil {
		return err
	}
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "domain", o.Domain))
	var own wake // of the ledger and of drains
	g, ctx := newGroup(ctx)
	if o.Caches == nil {
		g.run(func() error { return caches.Run(ctx) })
	}
	if o.Drains != nil {
		if stop := o.Drains.Watch(func(string) { own.ring() }); stop != nil {
			defer stop()
		}
	}
	g.run(func() error { return ledger.Run(ctx, own.ring) })
	g.run(func() error {
		if synced, err := caches.waitForSync(ctx); !synced {
			return err
		}
		if err := caches.compareInformers(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		return o.lead(ctx, func(ctx context.Context) error { return o.runTerm(ctx, caches, ledger, &own) })
	})
	return g.wait()
}

func (o ControllerOptions) lead(ctx context.Context, work func(context.Context) error) error {
	if o.Lead == nil {
		return work(ctx)
	}
	return o.Lead(ctx, work)
}

// runTerm runs a controller while this process leads. Each term has a controller of its own, as another process may have led in
// between.
func (o ControllerOptions) runTerm(ctx context.Context, caches *Caches, ledger LedgerStore, own *wake) error {
	parts, err := o.complete(caches, ledger)
	if err != nil {
		return err
	}
	c, err := controller.New(parts)
	if err != nil {
		return err
	}
	changed, stop := caches.Watch()
	defer stop()
	rung, stopOwn := own.listen()
	defer stopOwn()
	woken := make(chan struct{}, 1)
	g, ctx := newGroup(ctx)
	g.run(func() error { mergeSignals(ctx, woken, changed, rung); return nil })
	g.run(func() error { return c.Run(ctx, woken) })
	return g.wait()
}

// complete makes the parts of a controller that are nil.
func (o ControllerOptions) complete(caches *Caches, ledger LedgerStore) (controller.Options, error) {
	c := o.Controller
	if c.Domain == "" {
		c.Domain = o.Domain
	}
	if c.Ledger == nil {
		c.Ledger = ledger
	}
	if c.Health == nil {
		c.Health = caches.Health
	}
	shadows, err := NewShadows(caches.Client)
	if err != nil {
		return c, err
	}
	records, err := NewRecords(shadows.In(o.Domain), caches.Shadows.List)
	if err != nil {
		return c, err
	}
	if c.Shadows == nil {
		c.Shadows = records
	}
	if c.Rollouts == nil {
		c.Rollouts, err = NewRollouts(caches.Client, RolloutsOptions{Domain: o.Domain, List: caches.Rollouts.List, Revision: caches.Revisions.Get})
		if err != nil {
			return c, err
		}
	}
	if c.Fleet != nil {
		return c, nil
	}
	c.Fleet = newFleet(caches.Client, caches.Nodes, o.Nodes, c.Shadows)
	return c, nil
}

// AgentOptions are those of [RunAgent]. Node, Agent.Disk and Agent.Updater are required.
type AgentOptions struct {
	// Node is the name of the Node that the agent runs on.
	Node string
	// Agent has the Disk, the Updater and the bounds of the agent. RunAgent makes its Shadows and NodeUID where they are nil. Where
	// Changed is set, it wakes the agent besides the watch.
	Agent nodeagent.Options
	// Guard stands between the agent and the shadow of its node, such as one that shows no shadow until this process holds the
	// Lease of its node. Nil means none.
	Guard func(nodeagent.Shadows) nodeagent.Shadows
	// HTTP is the client for all requests. Nil means one of the rest.Config.
	HTTP *http.Client
	// Shadows is an informer that sees the NodeShadow of the node, or all of them, and that the process runs already. Nil means a
	// watch of the one NodeShadow.
	Shadows Informer
}

// RunAgent takes the attempts that the shadow of one node orders until ctx ends; then it returns nil. An error means that it
// can't go on: an option is missing or an informer has stopped. Errors of the API server are logged and tried again.
//
// The process takes [AgentRules], and get on its Node where Agent.NodeUID is nil.
func RunAgent(ctx context.Context, config *rest.Config, o AgentOptions) error {
	check := checkerFor("RunAgent")
	check.Require("AgentOptions.Node", o.Node, nodeRemedy)
	check.Require("AgentOptions.Agent.Disk", o.Agent.Disk, "see checkpoint.Open")
	check.Require("AgentOptions.Agent.Updater", o.Agent.Updater, "see nodeagent.Updater, nodeagent.Exec and nodeagent.Config")
	check.Require("config", config, configRemedy)
	if err := check.Err(); err != nil {
		return err
	}
	client, _, err := clientsFor("RunAgent", config, o.HTTP)
	if err != nil {
		return err
	}
	shadows, err := NewShadows(client)
	if err != nil {
		return err
	}
	own, err := NewAgentShadow(shadows, o.Node, nil)
	if err != nil {
		return err
	}
	seen, err := o.cache(client)
	if err != nil {
		return fmt.Errorf("rollout/kube.RunAgent: %w", err)
	}
	woken := make(chan struct{}, 1)
	a, err := nodeagent.New(o.complete(own, shadows, woken))
	if err != nil {
		return err
	}
	g, ctx := newGroup(ctx)
	g.run(func() error {
		return seen.Run(ctx, func() {
			sh, _ := seen.Get(o.Node)
			own.See(sh)
			signal(woken)
		})
	})
	if o.Agent.Changed != nil {
		g.run(func() error { mergeSignals(ctx, woken, o.Agent.Changed, nil); return nil })
	}
	g.run(func() error { return a.Run(ctx) })
	return g.wait()
}

// cache is that of the one shadow, or over the informer of the embedder.
func (o AgentOptions) cache(client dynamic.Interface) (Cache[v1alpha1.NodeShadow], error) {
	if o.Shadows == nil {
		return newOwnShadowCache(client, o.Node)
	}
	return cacheOver[v1alpha1.NodeShadow](o.Shadows, v1alpha1.NodeShadowKind, "AgentOptions.Shadows")
}

// complete makes the parts of an agent that are nil.
func (o AgentOptions) complete(own AgentShadow, shadows *Shadows, woken <-chan struct{}) nodeagent.Options {
	a := o.Agent
	a.Changed = woken
	if a.Shadows == nil {
		a.Shadows = own
	}
	if o.Guard != nil {
		a.Shadows = o.Guard(a.Shadows)
	}
	if a.NodeUID == nil {
		a.NodeUID = func(ctx context.Context) (string, error) {
			n, err := shadows.nodes.get(ctx, o.Node)
			if err != nil {
				return "", err
			}
			return string(n.GetUID()), nil
		}
	}
	return a
}

// A group runs functions until one returns an error or the context ends.
type group struct {
	stop context.CancelFunc
	wg   sync.WaitGroup
	once sync.Once
	err  error
}

func newGroup(ctx context.Context) (*group, context.Context) {
	ctx, stop := context.WithCancel(ctx)
	return &group{stop: stop}, ctx
}

// run calls f in a goroutine. The first error, and the end of f without one, end the group: each part of it lives as long as all.
func (g *group) run(f func() error) {
	g.wg.Go(func() {
		defer g.stop()
		if err := f(); err != nil {
			g.once.Do(func() { g.err = err })
		}
	})
}

// wait returns the first error after all functions have returned.
func (g *group) wait() error {
	g.wg.Wait()
	g.stop()
	return g.err
}

// mergeSignals forwards the values of two channels to one with a place for one value, until ctx ends. Either may be nil.
func mergeSignals(ctx context.Context, to chan struct{}, a, b <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a:
		case <-b:
		}
		signal(to)
	}
}

// An onlyOnce lets one Run go on at a time.
type onlyOnce struct {
	mu   sync.Mutex
	runs bool
}

func (o *onlyOnce) begin() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.runs {
		return false
	}
	o.runs = true
	return true
}

func (o *onlyOnce) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs = false
}
