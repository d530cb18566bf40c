// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstage

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/drain"
	drainkube "github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/kube"
)

// holderOf is what the rollouts of a domain are called as a holder of drained nodes.
func holderOf(domain string) string { return "rollout/" + domain }

// A plant is what the controllers of a process are made of, one for each time that it leads, as those of the reference controller are.
type plant struct {
	drainer *drain.Drainer
	options controller.Options
}

// run has a new controller work until ctx ends, and lets go of what was remembered of its drains.
func (p *plant) run(ctx context.Context, c *child) error {
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTime)
		defer cancel()
		if err := p.drainer.Forget(ctx, holderOf(c.Domain)); err != nil {
			klog.FromContext(ctx).Error(err, "Ending a term")
		}
	}()
	ctl, err := controller.New(p.options)
	if err != nil {
		return err
	}
	return ctl.Run(ctx, c.wake)
}

// forgetTime bounds how long the end of a term waits for passes that are under way.
const forgetTime = 10 * time.Second

// plant wires what a controller is made of, with caches that live as long as ctx.
func (c *child) plant(ctx context.Context, config *rest.Config) (*plant, error) {
	config, delays := rest.CopyConfig(config), newDraw(c.Task)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return stopper{c, late{delays, next}} })
	core, err1 := kubernetes.NewForConfig(config)
	client, err2 := dynamic.NewForConfig(config)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	d, nodes, health, err := c.drainer(ctx, config, core)
	if err != nil {
		return nil, err
	}
	shadows, err1 := kube.NewShadowCache(client)
	rollouts, err2 := kube.NewRolloutCache(client)
	revisions, err3 := kube.NewRevisionCache(client)
	ledger, err4 := kube.NewLedgerStore(client, c.Domain)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	for _, run := range []func(context.Context, func()) error{shadows.Run, rollouts.Run, revisions.Run, ledger.Run} {
		go func() {
			if err := run(ctx, c.poke); err != nil {
				c.tell(Failed, err.Error())
			}
		}()
	}
	for !shadows.Synced() || !rollouts.Synced() || !revisions.Synced() {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	all, err1 := kube.NewShadows(client)
	if err1 != nil {
		return nil, err1
	}
	fleet, err1 := kube.NewFleet(client, nodes)
	records, err2 := kube.NewRecords(all.In(c.Domain), shadows.List)
	of, err3 := kube.NewRollouts(client, kube.RolloutsOptions{Domain: c.Domain, List: rollouts.List, Revision: revisions.Get})
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return &plant{d, controller.Options{
		Ledger: ledger, Fleet: fleet, Health: health, Shadows: records, Rollouts: of,
		Drainer: &drain.NodeDrainer{Drainer: d, Holder: holderOf(c.Domain), Policy: drain.Policy{Settle: ptr.To(100 * time.Millisecond)}},
	}}, nil
}

// drainer makes a Drainer, and returns the Nodes of its cache and, if the task asks for it, what judges their health by the same cache.
func (c *child) drainer(ctx context.Context, config *rest.Config, core kubernetes.Interface) (
	*drain.Drainer, func() []*corev1.Node, controller.Health, error,
) {
	options := drainkube.CacheOptions{DaemonSets: true}
	factory := drainkube.NewFactory(core, options)
	cache, err := drainkube.NewCache(factory, options)
	if err != nil {
		return nil, nil, nil, err
	}
	health, err := c.health(factory)
	if err != nil {
		return nil, nil, nil, err
	}
	factory.Start(ctx.Done())
	if err := cache.WaitForSync(ctx); err != nil {
		return nil, nil, nil, err
	}
	client, err := drainkube.NewClientForConfig(config, nil, drainkube.ClientOptions{QPS: 500, Burst: 500})
	if err != nil {
		return nil, nil, nil, err
	}
	d, err := drain.New(drain.Options{Cache: cache.View(), Client: client})
	if err != nil {
		return nil, nil, nil, err
	}
	cache.View().Watch(func(drain.Change) { c.poke() })
	d.Watch(func(string) { c.poke() })
	return d, cache.View().Nodes, health, c.wait(ctx, health)
}

// health is nil if the task does not ask for it.
func (c *child) health(factory informers.SharedInformerFactory) (controller.Health, error) {
	if !c.Health {
		return nil, nil //nolint:nilnil // no health is a value of the options
	}
	return kube.NewHealth(kube.FactoryInformers(factory), kube.HealthOptions{})
}

// wait returns when everything is known that health is judged by.
func (c *child) wait(ctx context.Context, health controller.Health) error {
	h, ok := health.(kube.Health)
	for ok && !h.Synced() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}
