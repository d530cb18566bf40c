// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/drain"
	drainkube "github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/examples/internal/controller/metrics"
	"github.com/belayproject/belay/examples/internal/controller/settings"
	machinekube "github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A Plane is the API server as this process sees it: one cache of each kind of object, whatever the number of domains.
type Plane struct {
	s       *settings.Run
	own     Parts
	metrics *metrics.Set
	config  *rest.Config
	core    kubernetes.Interface
	client  dynamic.Interface
	events  events.EventBroadcaster
	scheme  *runtime.Scheme // of what events are about

	factory   informers.SharedInformerFactory
	pods      *drainkube.Cache
	health    kube.Health
	drainer   *drain.Drainer
	nodes     machinekube.Nodes // of machines, nil where they are not looked after
	shadows   kube.Cache[v1alpha1.NodeShadow]
	rollouts  kube.Cache[v1alpha1.Rollout]
	revisions kube.Cache[v1alpha1.Revision]

	toggle  *toggle                     // the switch for everything
	ledgers map[string]kube.LedgerStore // by domain
	watches []func() error              // of what no cache of a package looks after
	changed bell
	heard   ear
	synced  atomic.Bool
}

// Parts are what a program adds to the controller. All may be empty.
type Parts struct {
	// Gates are asked at each pass of each domain, StageGates while a rollout is at a stage that names them.
	Gates      []controller.Gate
	StageGates map[string]controller.Gate
	// Providers make machines, by the name that --machine-provider gives.
	Providers map[string]provider.Provider
	// Responders evacuate pods, by the name that pods and drain rules give.
	Responders map[string]drain.Responder
	// PoweredOff proves that the machine of a node is off; see drain.Options.
	PoweredOff func(ctx context.Context, node *corev1.Node) (bool, error)
}

// New makes the parts. Nothing is asked of the API server yet.
func New(s *settings.Run, m *metrics.Set, own Parts) (*Plane, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return nil, &settings.FlagError{Flag: "kubeconfig", Value: s.Kubeconfig, Want: "must be a kubeconfig, or empty in a pod: " + err.Error()}
	}
	// The API server's own fairness bounds this process; evictions have a bound of their own.
	config.UserAgent, config.QPS = "belay-controller/"+version.Get().GitVersion, -1
	config.Wrap(m.Requests)
	p := &Plane{s: s, own: own, metrics: m, config: config}
	config.Wrap(p.heard.wrap)
	if p.core, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if p.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if err := p.drains(); err != nil {
		return nil, err
	}
	p.metrics.Configs(p.configs)
	p.toggle = newToggle(p.core, s.Namespace, s.Switch)
	if err := p.check("configmaps", p.toggle.informer); err != nil {
		return nil, err
	}
	return p, p.records()
}

// records makes the caches of the objects of rollouts.
func (p *Plane) records() (err error) {
	var errs [3]error
	p.shadows, errs[0] = kube.NewShadowCache(p.client)
	p.rollouts, errs[1] = kube.NewRolloutCache(p.client)
	p.revisions, errs[2] = kube.NewRevisionCache(p.client)
	p.ledgers = make(map[string]kube.LedgerStore, len(p.s.Domains))
	for _, domain := range p.s.Domains {
		if p.ledgers[domain], err = kube.NewLedgerStore(p.client, domain); err != nil {
			return err
		}
	}
	return errors.Join(errs[:]...)
}

// drains makes what drains nodes, and the caches that it shares with the health of nodes.
func (p *Plane) drains() error {
	policies := []drain.Policy{p.s.Policy}
	if p.s.Forced != nil {
		policies = append(policies, *p.s.Forced)
	}
	options := drainkube.CacheOptionsFor(policies...)
	p.factory = drainkube.NewFactory(p.core, options)
	var err error
	if p.pods, err = drainkube.NewCache(p.factory, options); err != nil {
		return err
	}
	if p.health, err = kube.NewHealth(kube.FactoryInformers(p.factory), kube.HealthOptions{Bad: conditions(p.s.BadConditions)}); err != nil {
		return err
	}
	apps := p.factory.Apps().V1()
	if err := errors.Join(p.check("deployments", apps.Deployments().Informer()), p.check("statefulsets", apps.StatefulSets().Informer())); err != nil {
		return err
	}
	if p.s.Machines.Provider != "" {
		configs, err := machinekube.NewConfigs(p.client)
		if err != nil {
			return err
		}
		nodes := p.factory.Core().V1().Nodes().Informer()
		if p.nodes, err = machinekube.NewNodes(p.core, nodes, configs); err != nil {
			return err
		}
	}
	client, err := drainkube.NewClientForConfig(p.config, nil, drainkube.ClientOptions{})
	if err != nil {
		return err
	}
	scheduler, err := drain.NewScheduler(drain.SchedulerOptions{Rate: p.s.Evictions})
	if err != nil {
		return err
	}
	p.scheme = runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(p.scheme), v1alpha1.AddToScheme(p.scheme)); err != nil {
		return err
	}
	responders, err := newResponders(p)
	if err != nil {
		return err
	}
	p.events = events.NewBroadcaster(&events.EventSinkImpl{Interface: p.core.EventsV1()})
	leases, err := newLeaseKeeper(p)
	if err != nil {
		return err
	}
	p.drainer, err = drain.New(drain.Options{
		Cache: p.pods.View(), Client: client, Scheduler: scheduler, Leases: leases, Metrics: p.metrics.Drain(),
		Recorder: p.events.NewRecorder(p.scheme, "belay-drain"), Responders: responders, PoweredOff: p.own.PoweredOff,
		NodeConditions: p.s.NodeConditions,
	})
	return err
}

// newResponders makes those of the program, and the one that waits for the eviction responders of pods.
func newResponders(p *Plane) (map[string]drain.Responder, error) {
	requester, err := drainkube.NewEvictionRequester(p.config, nil, drainkube.Options{})
	if err != nil {
		return nil, err
	}
	all := map[string]drain.Responder{"EvictionRequest": requester}
	maps.Copy(all, p.own.Responders)
	return all, nil
}

// Run watches, and leads the domains that no other process leads, until ctx ends.
func (p *Plane) Run(ctx context.Context) error {
	p.standBy()
	g, ctx := errgroup.WithContext(ctx)
	if err := p.events.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	p.factory.StartWithContext(ctx)
	p.pods.View().Watch(func(drain.Change) { p.changed.ring() })
	p.drainer.Watch(func(string) { p.changed.ring() })
	for _, run := range []func(context.Context, func()) error{p.shadows.Run, p.rollouts.Run, p.revisions.Run, p.toggle.run} {
		g.Go(func() error { return run(ctx, p.changed.ring) })
	}
	g.Go(func() error {
		if err := p.wait(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		for _, domain := range p.s.Domains {
			g.Go(func() error { return p.domain(ctx, domain) })
		}
		if p.s.Machines.Provider != "" {
			g.Go(func() error { return p.machines(ctx) })
		}
		if p.s.NodeMaintenance {
			g.Go(func() error { return runMaintenances(ctx, p) })
		}
		if p.s.Agents.Namespace != "" {
			g.Go(func() error { return p.agents(ctx) })
		}
		if p.s.EvictionRequests {
			g.Go(func() error { return serveEvictionRequests(ctx, p) })
		}
		return nil
	})
	err := g.Wait()
	p.factory.Shutdown()
	p.events.Shutdown()
	return err
}

// wait returns when everything has been seen that there was at the start: before that nobody may decide.
func (p *Plane) wait(ctx context.Context) error {
	if err := p.pods.WaitForSync(ctx); err != nil {
		return ended(ctx, err)
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !p.health.Synced() || !p.shadows.Synced() || !p.rollouts.Synced() || !p.revisions.Synced() || !p.toggle.informer.HasSynced() {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
	}
	p.synced.Store(true)
	return nil
}

// check has Ready ask after the watch of an informer.
func (p *Plane) check(resource string, informer cache.SharedIndexInformer) error {
	check, err := kube.NoteWatchErrors(informer, resource)
	if err != nil {
		return err
	}
	p.watches = append(p.watches, check)
	return nil
}

// Ready returns nil once everything has been seen, and as long as no watch is refused by which rollouts are decided.
func (p *Plane) Ready() error {
	if !p.synced.Load() {
		return errors.New("the cluster has not been seen whole yet")
	}
	errs := []error{p.pods.Check(), p.shadows.Check(), p.rollouts.Check(), p.revisions.Check()}
	for _, check := range p.watches {
		errs = append(errs, check())
	}
	for _, l := range p.ledgers {
		errs = append(errs, l.Check())
	}
	return errors.Join(errs...)
}

// forget has the Drainer forget a holder whose work this process does no longer: how its drains stand is the next leader's to show.
func (p *Plane) forget(ctx context.Context, holder string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.s.Stop)
	defer cancel()
	if err := p.drainer.Forget(ctx, holder); err != nil {
		klog.FromContext(ctx).Error(err, "Ending a term", "holder", holder)
	}
}

// ended is nil for an error that came of the end of ctx.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
