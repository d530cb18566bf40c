// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package simnodes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/examples/internal/agent/update"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/rollout/nodeagent"
)

// How the agents look at a config that is on trial: quicker than in production, where minutes pass.
const (
	probeEvery   = 500 * time.Millisecond
	verifyFor    = time.Second
	verifyWithin = time.Minute
	retryMin     = 250 * time.Millisecond
	retryMax     = 5 * time.Second
	// stopTime bounds the record of a planned stop.
	stopTime = 5 * time.Second
	// apart is the time between two starts of agents.
	apart = 2 * time.Millisecond
)

// Options of a Crowd. All are required.
type Options struct {
	// Config is the connection that all agents share. It is not changed.
	Config *rest.Config
	// Dir is where each node keeps its state. It must exist.
	Dir string
	// Init is the kubelet's config that every node was provisioned with.
	Init string
	// Breaks says why a config ends the process of a node at once; empty where it does not.
	Breaks func(node string, c *kubelet.Config) string
}

// A Crowd is the agents of many nodes. Its methods may be called at the same time.
type Crowd struct {
	o       Options
	client  dynamic.Interface
	calls   atomic.Int64
	started atomic.Int64
	nodes   map[string]*process // not changed after New
}

// New makes the agents of the named nodes. Nothing is asked of the API server yet.
func New(o Options, names []string) (*Crowd, error) {
	c := &Crowd{o: o, nodes: make(map[string]*process, len(names))}
	c.o.Config = rest.CopyConfig(o.Config)
	c.o.Config.QPS = -1 // the API server's own fairness bounds the agents, of which each asks seldom
	c.o.Config.UserAgent = "belay-demo-agents"
	c.o.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, &c.calls} })
	var err error
	if c.client, err = kube.NewClient(c.o.Config, nil); err != nil {
		return nil, err
	}
	for _, name := range names {
		c.nodes[name] = newProcess(func(cfg *kubelet.Config) string { return o.Breaks(name, cfg) })
	}
	return c, nil
}

// counted counts requests.
type counted struct {
	next  http.RoundTripper
	calls *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.calls.Add(1)
	return c.next.RoundTrip(r)
}

// Run runs the agents until ctx ends, and returns when all have ended. An agent that ends by itself ends all.
func (c *Crowd) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.Logger{}) // what they would log is on the screen
	g, ctx := errgroup.WithContext(ctx)
	for name, p := range c.nodes {
		g.Go(func() error {
			if err := c.agent(ctx, name, p); err != nil && ctx.Err() == nil {
				return fmt.Errorf("the agent of %s: %w", name, err)
			}
			return nil
		})
		backoff.Sleep(ctx, apart)
	}
	return g.Wait()
}

// agent is that of one node.
func (c *Crowd) agent(ctx context.Context, name string, p *process) error {
	store, err := checkpoint.Open(filepath.Join(c.o.Dir, name), checkpoint.Options{Ballast: -1})
	if err != nil {
		return err
	}
	defer store.Close()
	options, err := c.options(name, store, p)
	if err != nil {
		return err
	}
	syncer, err := configsync.NewSteered(ctx, options, update.Revisions(c.client))
	if err != nil {
		return err
	}
	updater, err := nodeagent.Config{Syncer: syncer}.NewUpdater()
	if err != nil {
		return err
	}
	part, err := update.New(update.Options{
		Node: name, Config: c.o.Config, Disk: store, Updater: updater,
		VerifyFor: verifyFor, VerifyEvery: probeEvery, VerifyWithin: verifyWithin, RetryMin: retryMin, RetryMax: retryMax,
	})
	if err != nil {
		return err
	}
	return c.live(ctx, p, syncer.Syncer, part)
}

// live runs the parts of an agent until ctx ends, and has it on record then that the next start is planned.
func (c *Crowd) live(ctx context.Context, p *process, syncer *configsync.Syncer[*kubelet.Config], part *update.Part) error {
	g, run := errgroup.WithContext(ctx)
	g.Go(func() error { return p.run(run, syncer) })
	g.Go(func() error { return c.sync(run, g, p, syncer, part) })
	err := g.Wait()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	return errors.Join(err, syncer.Stopping(stopping))
}

// sync keeps the node at the wanted config from its first start on, and has it take part in rollouts.
func (c *Crowd) sync(ctx context.Context, g *errgroup.Group, p *process, syncer *configsync.Syncer[*kubelet.Config], part *update.Part) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.chosen:
	}
	c.started.Add(1)
	g.Go(func() error { return part.Run(ctx) })
	return syncer.Run(ctx)
}

// options are those of a node's syncer: the reference agent's, but for its times.
func (c *Crowd) options(name string, store configsync.Store, p *process) (configsync.Options[*kubelet.Config], error) {
	local := settings.Local{Key: kubelet.Key, MinTrial: time.Second, MaxTrial: time.Minute, DefaultTrial: 2 * time.Second}
	o := local.Options()
	o.Init = func(context.Context) (configsync.Object, error) {
		return configsync.Object{Data: map[string]string{kubelet.Key: c.o.Init}}, nil
	}
	o.Store, o.Restarter, o.ProbeInterval, o.RetryMin, o.RetryMax = store, p, probeEvery, retryMin, retryMax
	var err1, err2 error
	o.Fetcher, err1 = kube.NewConfigMapFetcher(c.client, kube.Options{})
	o.Reporter, err2 = kube.NewNodeConditionReporter(c.client, name, kube.Options{Reread: settings.Reread})
	if err1 != nil {
		return o, err1
	}
	return o, err2
}

// Calls is how many requests the agents have sent to the API server so far.
func (c *Crowd) Calls() int64 { return c.calls.Load() }

// Started is how many agents have chosen their first config.
func (c *Crowd) Started() int { return int(c.started.Load()) }

// Runs returns the name of the config that the process of a node runs, "" for the one that it came with; ok is false
// while it runs none.
func (c *Crowd) Runs(node string) (config string, ok bool) {
	p := c.nodes[node]
	if p == nil {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.uses.Name, p.running
}

// Starts are the names of the configs with which the process of a node was started, in order; "" is the one that it
// came with.
func (c *Crowd) Starts(node string) (configs []string) {
	p := c.nodes[node]
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.starts {
		configs = append(configs, r.Name)
	}
	return configs
}

// Crashed returns the nodes whose process a config has ended, by its digest.
func (c *Crowd) Crashed(digest string) (nodes []string) {
	for name, p := range c.nodes {
		p.mu.Lock()
		if p.crashed[digest] > 0 {
			nodes = append(nodes, name)
		}
		p.mu.Unlock()
	}
	return nodes
}
