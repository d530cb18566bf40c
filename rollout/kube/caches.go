// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/internal/informer"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/restclient"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// An Informer is a shared informer that its owner runs. cache.SharedIndexInformer of client-go satisfies it, and so does what
// GetInformer of a controller-runtime cache returns.
type Informer = informer.Interface

// An InformerError says what is wrong with the [Informer] that an option names.
type InformerError = informer.Error

var errNotSynced = errors.New("the informer has not synced: its owner has to start it, with a right to list and watch")

// Informers are those that a process runs already. Each that is set saves a watch. Those of this package's kinds may hold typed
// or unstructured objects.
type Informers struct {
	Nodes, Pods, Deployments, StatefulSets, DaemonSets Informer

	Shadows, Rollouts, Revisions Informer
}

// FactoryInformers returns the informers of a factory for the kinds that Kubernetes has. The caller starts the factory, before
// or after.
func FactoryInformers(factory informers.SharedInformerFactory) Informers {
	if factory == nil {
		return Informers{}
	}
	core, apps := factory.Core().V1(), factory.Apps().V1()
	return Informers{
		Nodes: core.Nodes().Informer(), Pods: core.Pods().Informer(), Deployments: apps.Deployments().Informer(),
		StatefulSets: apps.StatefulSets().Informer(), DaemonSets: apps.DaemonSets().Informer(),
	}
}

// CachesOptions are those of [NewCaches]. The zero value makes clients and informers of the rest.Config.
type CachesOptions struct {
	// HTTP is the client for all requests. Nil means one of the rest.Config.
	HTTP *http.Client
	// Informers are those that the process runs already. Where one is nil, the Caches run their own.
	Informers Informers
	// Health says what the Health of the Caches looks at.
	Health HealthOptions
}

// Caches are what the rollout controllers of a process see of the API server: one watch for each kind of object, whatever the
// number of disruption domains. Their methods may be called from several goroutines.
type Caches struct {
	// Client writes for the controllers.
	Client    dynamic.Interface
	Shadows   Cache[v1alpha1.NodeShadow]
	Rollouts  Cache[v1alpha1.Rollout]
	Revisions Cache[v1alpha1.Revision]
	Health    Health

	factory informers.SharedInformerFactory // of the informers that the embedder does not run
	in      Informers
	watches []func() error // of the factory's informers
	foreign map[string]Informer
	changed wake
	running onlyOnce

	comparison comparison
}

// NewCaches makes the caches. It makes no request: see [Caches.Run].
func NewCaches(config *rest.Config, o CachesOptions) (*Caches, error) {
	client, core, err := clientsFor("NewCaches", config, o.HTTP)
	if err != nil {
		return nil, err
	}
	c := &Caches{Client: client, in: o.Informers, foreign: map[string]Informer{}}
	c.comparison = comparison{core: core, done: map[string]bool{}}
	c.factory = informers.NewSharedInformerFactoryWithOptions(core, 0, informers.WithTransform(dropManagedFields))
	var errs [5]error
	c.Shadows, errs[0] = cacheFor(c, "Shadows", o.Informers.Shadows, v1alpha1.NodeShadowKind, NewShadowCache)
	c.Rollouts, errs[1] = cacheFor(c, "Rollouts", o.Informers.Rollouts, v1alpha1.RolloutKind, NewRolloutCache)
	c.Revisions, errs[2] = cacheFor(c, "Revisions", o.Informers.Revisions, v1alpha1.RevisionKind, NewRevisionCache)
	errs[3] = c.completeInformers()
	health, err := newHealth(c.in, o.Health)
	errs[4] = err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("rollout/kube.NewCaches: %w", err)
	}
	c.Health, c.comparison.seen = health, health.seen
	return c, nil
}

// clientsFor makes the clients of a top-level function.
func clientsFor(function string, config *rest.Config, over *http.Client) (dynamic.Interface, kubernetes.Interface, error) {
	check := checkerFor(function)
	check.Require("config", config, configRemedy)
	if err := check.Err(); err != nil {
		return nil, nil, err
	}
	config, over, err := restclient.WithoutTimeouts(config, over)
	if err != nil {
		return nil, nil, fmt.Errorf("rollout/kube.%s: %w", function, err)
	}
	client, err1 := dynamic.NewForConfigAndClient(config, over)
	core, err2 := kubernetes.NewForConfigAndClient(config, over)
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, fmt.Errorf("rollout/kube.%s: %w", function, err)
	}
	return client, core, nil
}

// cacheFor is the cache over an embedder's informer, or one of its own.
func cacheFor[T any](
	c *Caches, name string, given Informer, kind string, own func(dynamic.Interface) (Cache[T], error),
) (Cache[T], error) {
	if given == nil {
		return own(c.Client)
	}
	c.foreign["Informers."+name] = given
	return cacheOver[T](given, kind, "Informers."+name)
}

// completeInformers takes from the factory what the embedder does not run.
func (c *Caches) completeInformers() error {
	core, apps := c.factory.Core().V1(), c.factory.Apps().V1()
	for _, part := range []struct {
		name string
		in   *Informer
		own  func() cache.SharedIndexInformer
	}{
		{"Nodes", &c.in.Nodes, core.Nodes().Informer},
		{"Pods", &c.in.Pods, core.Pods().Informer},
		{"Deployments", &c.in.Deployments, apps.Deployments().Informer},
		{"StatefulSets", &c.in.StatefulSets, apps.StatefulSets().Informer},
		{"DaemonSets", &c.in.DaemonSets, apps.DaemonSets().Informer},
	} {
		if *part.in != nil {
			c.foreign["Informers."+part.name] = *part.in
			continue
		}
		own := part.own()
		check, err := NoteWatchErrors(own, strings.ToLower(part.name))
		if err != nil {
			return err
		}
		*part.in, c.watches = own, append(c.watches, check)
	}
	return nil
}

// dropManagedFields is the transform of the caches' own informers.
func dropManagedFields(obj any) (any, error) {
	if o, err := meta.Accessor(obj); err == nil {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// Run fills the caches and keeps them up to date until ctx ends. It returns an error where it is called twice, and an
// [InformerError] soon after the owner of an informer has stopped it, or has not started one of this package's kinds
// within a second.
func (c *Caches) Run(ctx context.Context) error {
	if c.Health == nil {
		return option.NotMade("rollout/kube.Caches.Run", "rollout/kube.NewCaches")
	}
	if !c.running.begin() {
		return fmt.Errorf("rollout/kube: Caches.Run: %w", controller.ErrRunning)
	}
	defer c.running.end()
	handles := map[Informer]cache.ResourceEventHandlerRegistration{}
	for _, i := range []Informer{c.in.Nodes, c.in.Pods} {
		handle, err := i.AddEventHandler(handlerOf(c.changed.ring))
		if err != nil {
			return fmt.Errorf("rollout/kube: Caches.Run: %w", err)
		}
		handles[i] = handle
	}
	defer func() {
		for i, handle := range handles {
			_ = i.RemoveEventHandler(handle) // of an informer that has stopped there is nothing to remove
		}
	}()
	g, ctx := newGroup(ctx)
	c.factory.Start(ctx.Done())
	for _, run := range []func(context.Context, func()) error{c.Shadows.Run, c.Rollouts.Run, c.Revisions.Run} {
		g.run(func() error { return run(ctx, c.changed.ring) })
	}
	for option, i := range c.foreign {
		g.run(func() error { return informer.WatchStopped(ctx, option, i) })
	}
	err := g.wait()
	c.factory.Shutdown()
	return err
}

// Nodes returns all Nodes. They must not be changed.
func (c *Caches) Nodes() []*corev1.Node {
	if c.Health == nil {
		return nil
	}
	objects := c.comparison.seen.nodes.List()
	all := make([]*corev1.Node, 0, len(objects))
	for _, o := range objects {
		if n, ok := o.(*corev1.Node); ok {
			all = append(all, n)
		}
	}
	return all
}

// Watch returns a channel that has a value after each change of a Node, a pod or an object of this package, one for those that
// came together, until stop is called.
func (c *Caches) Watch() (changed <-chan struct{}, stop func()) { return c.changed.listen() }

// Synced reports whether the caches have every object that existed when they began.
func (c *Caches) Synced() bool {
	if c.Health == nil {
		return false
	}
	return c.Health.Synced() && c.Shadows.Synced() && c.Rollouts.Synced() && c.Revisions.Synced()
}

// Check returns nil while the caches are up to date as far as is known, or else an error for each kind of object: see [NoteWatchErrors] and
// [InformerError].
func (c *Caches) Check() error {
	if c.Health == nil {
		return option.NotMade("rollout/kube.Caches.Check", "rollout/kube.NewCaches")
	}
	errs := []error{c.Shadows.Check(), c.Rollouts.Check(), c.Revisions.Check()}
	for _, check := range c.watches {
		errs = append(errs, check())
	}
	for option, i := range c.foreign {
		if err := informer.CheckStopped(option, i); err != nil {
			errs = append(errs, err)
		} else if !i.HasSynced() {
			errs = append(errs, &InformerError{Option: option, Err: errNotSynced})
		}
	}
	return errors.Join(errs...)
}

const (
	syncedEvery = 20 * time.Millisecond
	// startTime is how long the owner of an informer has for starting it.
	startTime = time.Second
	// reportEvery is how often a wait for the caches is logged, with what is missing.
	reportEvery = 10 * time.Second
)

// waitForSync waits until the caches have synced, and reports whether they have: not if ctx ends first. An informer that its owner
// does not start within a second is an error.
func (c *Caches) waitForSync(ctx context.Context) (bool, error) {
	tick := time.NewTicker(syncedEvery)
	defer tick.Stop()
	reportAt := time.Now().Add(startTime)
	for !c.Synced() {
		select {
		case <-ctx.Done():
			return false, nil
		case <-tick.C:
		}
		if now := time.Now(); now.After(reportAt) {
			for option, i := range c.foreign {
				if err := informer.CheckStarted(option, i); err != nil {
					return false, fmt.Errorf("rollout/kube: waiting for the caches: %w", err)
				}
			}
			reportAt = now.Add(reportEvery)
			klog.FromContext(ctx).Info("Waiting for the caches of rollouts", "missing", c.Check())
		}
	}
	return true, nil
}

// A wake tells its listeners of changes. The zero value is one.
type wake struct {
	mu        sync.Mutex
	listeners map[chan struct{}]bool
}

// ring wakes all listeners, and does not wait for any.
func (w *wake) ring() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.listeners {
		signal(c)
	}
}

// signal puts a value into a channel with a place for one, unless there is one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// listen returns a channel that has a value after each ring, one for those that came together, until stop is called.
func (w *wake) listen() (rung <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listeners == nil {
		w.listeners = map[chan struct{}]bool{}
	}
	w.listeners[c] = true
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.listeners, c)
	}
}
