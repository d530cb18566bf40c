// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/demo/internal/lead"
	"github.com/belayproject/belay/examples/demo/internal/plane"
	"github.com/belayproject/belay/examples/demo/internal/settings"
	"github.com/belayproject/belay/examples/internal/rollouts"
	"github.com/belayproject/belay/examples/internal/scenario"
	"github.com/belayproject/belay/examples/internal/screen"
	"github.com/belayproject/belay/examples/internal/simnodes"
)

// manyCleanupTimeout bounds the removal of everything: there is much of it.
const manyCleanupTimeout = 5 * time.Minute

// How long it may take until the controller leads and the agents have started, and how often that is looked at.
const (
	readyTime, readyTimeANode = time.Minute, 200 * time.Millisecond
	readyEvery                = 200 * time.Millisecond
)

// many is what a run of the fleet holds and must give back.
type many struct {
	settings   settings.Fleet
	screen     *screen.Screen
	dir        string
	plane      *plane.Plane
	controller *lead.Controller
	fleet      *rollouts.Fleet
	crowd      *simnodes.Crowd
	player     *scenario.Player
	stop       context.CancelFunc // of the parts in this process
	parts      *errgroup.Group
	running    chan struct{} // closed when a part has ended
}

// runFleet plays rollouts over many nodes and removes everything again, whatever happens.
func runFleet(ctx context.Context, s settings.Fleet, out *os.File) error {
	r := &many{settings: s, screen: screen.New(out, os.Getenv)}
	began := time.Now()
	err := r.play(ctx)
	r.screen.Settle()
	switch {
	case err != nil && ctx.Err() != nil:
		err = errors.New("interrupted")
	case err != nil && r.controller != nil:
		r.screen.Say("", "The log of the controller ends:", r.controller.LogTail())
	}
	r.screen.Say("", "Stopping the processes and removing what the demo made.")
	if cleanup := r.cleanUp(context.WithoutCancel(ctx)); cleanup != nil {
		return errors.Join(err, fmt.Errorf("cleaning up: %w", cleanup))
	}
	r.say(fmt.Sprintf("All processes and files of the demo are removed. It took %s.", time.Since(began).Round(time.Second)))
	return errors.Join(err, r.screen.Err())
}

// play sets everything up and plays the acts.
func (r *many) play(ctx context.Context) error {
	config, err := r.setUp(ctx)
	if err != nil {
		return err
	}
	if err := r.startController(ctx); err != nil {
		return err
	}
	if err := r.startAgents(ctx, config); err != nil {
		return err
	}
	pause, stay := r.settings.Pause, r.settings.Stay
	if !r.screen.Live() {
		pause = 0
	}
	plan := rollouts.PlanFor(r.settings.Nodes)
	r.say(fmt.Sprintf("At most %d nodes may be away at a time, and %d that fail stop a rollout.", plan.Cap, plan.StopAt))
	r.player = scenario.New(scenario.Options{
		Fleet: r.fleet, Crowd: r.crowd, Screen: r.screen, Plan: plan, Data: scenario.Data, Page: r.controller.Page,
		Requests: r.controller.Requests, Ended: r.ended, Timeout: r.settings.Timeout, Pause: pause,
	})
	if err := r.player.Play(ctx, scenario.Acts()); err != nil {
		return err
	}
	if err := r.summarise(); err != nil || stay == 0 {
		return err
	}
	r.say(fmt.Sprintf("The fleet stays for %s: %s", stay, r.controller.Page))
	return r.remain(ctx, stay)
}

// setUp makes the directory, the control plane and the objects.
func (r *many) setUp(ctx context.Context) (config *rest.Config, err error) {
	if r.dir, err = os.MkdirTemp("", "belay-demo-"); err != nil {
		return nil, fmt.Errorf("making a directory for the demo: %w", err)
	}
	r.say("A fleet. Starting a control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok, which plays nodes. " +
		"The first time, they are built, which takes some minutes.")
	if r.plane, err = plane.Start(ctx, r.settings.ControlPlane, r.screen.Lines()); err != nil {
		return nil, err
	}
	if err := r.plane.StartServer(ctx); err != nil {
		return nil, err
	}
	if config, err = clientcmd.BuildConfigFromFlags("", r.plane.Kubeconfig()); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the control plane: %w", err)
	}
	if r.fleet, err = rollouts.Connect(config, r.settings.Nodes); err != nil {
		return nil, err
	}
	r.say(fmt.Sprintf("Creating %d nodes, %d of them as canaries, and two pods for each node, in Deployments with at most 100 and a budget each: %d.",
		r.settings.Nodes, r.fleet.Canaries, r.fleet.Apps()))
	if err := r.fleet.SetUp(ctx); err != nil {
		return nil, err
	}
	return config, r.fleet.AddWork(ctx, func(ready, of int) { r.progress("pods run", ready, of) })
}

// startController starts the reference controller and waits until it leads.
func (r *many) startController(ctx context.Context) (err error) {
	r.controller, err = lead.Start(lead.Options{
		Program: r.settings.Controller, Kubeconfig: r.plane.Kubeconfig(), Domain: rollouts.Name, Namespace: rollouts.Namespace,
		Page: r.settings.Page, Dir: r.dir,
	})
	if err != nil {
		return err
	}
	if err := r.until(ctx, "the controller leads", func() bool { return r.controller.Leads(ctx) }); err != nil {
		return err
	}
	r.say("The reference controller leads. Its page shows the fleet, live: " + r.controller.Page)
	return nil
}

// startAgents starts the agents in this process, and waits until each has chosen its first config.
func (r *many) startAgents(ctx context.Context, config *rest.Config) (err error) {
	r.say(fmt.Sprintf("Starting %d agents, in this one process: each has a directory, a config syncer, its part in rollouts, and one watch.", r.settings.Nodes))
	states := filepath.Join(r.dir, "nodes")
	if err := os.Mkdir(states, 0o700); err != nil {
		return fmt.Errorf("making a directory for the nodes: %w", err)
	}
	r.crowd, err = simnodes.New(simnodes.Options{Config: config, Dir: states, Init: scenario.Init, Breaks: r.breaks}, r.fleet.Nodes)
	if err != nil {
		return err
	}
	parts, stop := context.WithCancel(ctx)
	r.parts, parts = errgroup.WithContext(parts)
	r.stop, r.running = stop, make(chan struct{})
	r.parts.Go(func() error { return r.fleet.Watch(parts) })
	r.parts.Go(func() error { return r.crowd.Run(parts) })
	go func() { <-parts.Done(); close(r.running) }()
	return r.until(ctx, "the agents have started", func() bool {
		r.progress("agents have started", r.crowd.Started(), len(r.fleet.Nodes))
		return r.crowd.Started() == len(r.fleet.Nodes)
	})
}

// breaks says why a config is fatal on a node: a third of those that are no canaries have swap.
func (r *many) breaks(node string, c *kubelet.Config) string {
	i, _ := slices.BinarySearch(r.fleet.Nodes, node)
	return scenario.Breaks(i >= r.fleet.Canaries && i%3 == 0, c)
}

// until waits until ok, unless something ends that must not.
func (r *many) until(ctx context.Context, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime+time.Duration(r.settings.Nodes)*readyTimeANode)
	defer cancel()
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for !ok() {
		if err := r.ended(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
	return nil
}

// remain waits, unless something ends that must not.
func (r *many) remain(ctx context.Context, stay time.Duration) error {
	end := time.Now().Add(stay)
	for time.Now().Before(end) {
		if err := errors.Join(ctx.Err(), r.ended()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(readyEvery):
		}
	}
	return nil
}

// ended says what is gone though it must not be.
func (r *many) ended() error {
	errs := []error{r.plane.Ended(), r.controller.Ended()}
	if r.running != nil {
		select {
		case <-r.running:
			errs = append(errs, r.parts.Wait())
		default:
		}
	}
	return errors.Join(errs...)
}

// progress shows how far something is.
func (r *many) progress(what string, n, of int) {
	r.screen.Update(screen.View{
		Layout: screen.Layout{Columns: []screen.Column{{}, {}}},
		Rows:   []screen.Row{{Cells: []screen.Cell{{Text: what}, {Text: fmt.Sprintf("%d of %d", n, of)}}, Key: fmt.Sprint(what, n*4/max(1, of))}},
	})
}

// say writes a sentence that is not part of an act, below what is shown.
func (r *many) say(text string) {
	r.screen.Update(screen.View{})
	r.screen.Say(screen.Wrap(text, min(r.screen.Width()-1, sentenceWidth))...)
}

// sentenceWidth is how wide sentences are at most.
const sentenceWidth = 100

// summarise prints what happened and says whether it is what was expected.
func (r *many) summarise() error {
	r.screen.Settle()
	results := r.player.Results()
	layout, rows := scenario.Summary(results)
	paint := r.screen.Palette()
	r.screen.Say("", paint.Paint(screen.Strong, fmt.Sprintf("What happened, on %d nodes:", r.settings.Nodes)))
	r.screen.Say(screen.Table(layout, rows, r.screen.Width()-1, paint)...)
	r.screen.Say("CALLS EACH: requests to the API server by the controller + by agents, for each update of a node.")
	for _, result := range results {
		if !result.OK() {
			return errUnseen // the act's own conclusion says what
		}
	}
	return nil
}

// cleanUp stops and removes everything in the order in which it depends on each other.
func (r *many) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, manyCleanupTimeout)
	defer cancel()
	var errs []error
	if r.parts != nil {
		r.stop()
		_ = r.parts.Wait() // what ended them was told, and agents whose server is away have nothing to say
	}
	if r.controller != nil {
		errs = append(errs, r.controller.Stop(ctx))
	}
	if r.plane != nil {
		errs = append(errs, r.plane.Close(ctx))
	}
	if r.dir != "" {
		errs = append(errs, os.RemoveAll(r.dir))
	}
	return errors.Join(errs...)
}
