// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/belayproject/belay/examples/demo/internal/crew"
	"github.com/belayproject/belay/examples/demo/internal/fleet"
	"github.com/belayproject/belay/examples/demo/internal/plane"
	"github.com/belayproject/belay/examples/demo/internal/play"
	"github.com/belayproject/belay/examples/demo/internal/settings"
	"github.com/belayproject/belay/examples/demo/internal/story"
	"github.com/belayproject/belay/examples/internal/screen"
)

// cleanupTimeout bounds the removal of everything, after which what is left is named.
const cleanupTimeout = 90 * time.Second

// errUnseen means that the demo ran, and that not everything that was expected was seen.
var errUnseen = errors.New("not everything that was expected was seen")

// session is what one run holds and must give back.
type session struct {
	settings settings.Settings
	screen   *screen.Screen
	dir      string
	id       string // of the run, as a label
	early    bool   // there are nodes that begin before the API server runs
	plane    *plane.Plane
	cluster  *fleet.Cluster
	nodes    []*crew.Node
	player   *play.Player
	occupied *crew.Occupied
}

// run plays the story and removes everything again, whatever happens.
func run(ctx context.Context, s settings.Settings, out *os.File) error {
	r := &session{settings: s, screen: screen.New(out, os.Getenv)}
	err := r.play(ctx)
	r.screen.Settle()
	switch {
	case err != nil && ctx.Err() != nil:
		err = errors.New("interrupted")
	case err != nil:
		r.explain()
	}
	r.screen.Say("", "Stopping the processes and removing what the demo made.")
	if cleanup := r.cleanUp(context.WithoutCancel(ctx)); cleanup != nil {
		return errors.Join(err, fmt.Errorf("cleaning up: %w", cleanup))
	}
	r.say("All processes, files and objects of the demo are removed.")
	return errors.Join(err, r.screen.Err())
}

// play sets everything up and plays the story.
func (r *session) play(ctx context.Context) error {
	addresses, port, err := crew.Addresses(ctx, r.settings.Nodes)
	if err != nil {
		return err
	}
	if r.occupied, err = crew.OccupyPort(ctx, addresses, port); err != nil {
		return err
	}
	numbers := story.Settings{
		HealthzPort: port, TakenPort: r.occupied.Port, Trial: r.settings.Trial, CrashLoopThreshold: r.settings.Threshold,
	}
	kubeconfig, err := r.beginPlane(ctx)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("looking for the demo's own file: %w", err)
	}
	local := story.Init(numbers)
	o := crew.Options{
		Agent: r.settings.Agent, Self: self, Kubeconfig: kubeconfig, Dir: r.dir, Init: local.Payload, HealthzPort: port,
	}
	steps := story.Steps(numbers, r.plane != nil)
	count := len(steps)
	if r.early {
		count++
	}
	pause := r.settings.Pause
	if !r.screen.Live() {
		pause = 0
	}
	r.player = play.New(play.Options{
		Cluster: r.cluster, Screen: r.screen, Plane: r.plane, Known: []story.Config{local},
		Steps: count, StepTimeout: r.settings.StepTimeout, Pause: pause,
	})
	if r.early {
		if err := r.start(o, addresses, r.firstAlone(), nil); err != nil {
			return err
		}
		if err := r.player.Play(ctx, r.nodes, []story.Step{story.BeginAlone(numbers)}); err != nil || !r.player.AllSeen() {
			return errors.Join(err, r.summarise())
		}
	}
	if err := r.setUp(ctx); err != nil {
		return err
	}
	kubelet, err := r.kubelet(ctx, addresses[0])
	if err != nil {
		return err
	}
	if err := r.start(o, addresses, 0, kubelet); err != nil {
		return err
	}
	if err := r.player.Play(ctx, r.nodes, steps); err != nil {
		return err
	}
	return r.summarise()
}

// firstAlone is the number of the first node that needs no API server: the one that is a real kubelet does.
func (r *session) firstAlone() int {
	if r.settings.RealKubelet == settings.No {
		return 0
	}
	return 1
}

// start starts the nodes from the first of these addresses on that do not run yet. Only the first is a kubelet.
func (r *session) start(o crew.Options, addresses []string, from int, kubelet []string) error {
	running := r.nodes
	r.nodes = nil
	for i, address := range addresses[from : len(addresses)-len(running)] {
		n, err := crew.Start(o, fleet.NodeName(from+i+1), address, kubelet)
		kubelet = nil // one of them is enough
		if err != nil {
			r.nodes = append(r.nodes, running...)
			return err
		}
		r.nodes = append(r.nodes, n)
	}
	r.nodes = append(r.nodes, running...)
	return nil
}

// beginPlane makes the directory, and begins a control plane where it is the demo's own.
func (r *session) beginPlane(ctx context.Context) (kubeconfig string, err error) {
	if r.dir, err = os.MkdirTemp("", "belay-demo-"); err != nil {
		return "", fmt.Errorf("making a directory for the demo: %w", err)
	}
	kubeconfig = r.settings.Kubeconfig
	if kubeconfig == "" {
		r.say("Starting a control plane: etcd and kube-apiserver. The first time, they are built, which takes some " +
			"minutes. The nodes do not wait for it.")
		if r.plane, err = plane.Start(ctx, r.settings.ControlPlane, r.screen.Lines()); err != nil {
			return "", err
		}
		kubeconfig = r.plane.Kubeconfig()
	}
	r.id = fmt.Sprintf("%08x", rand.Uint32())
	if r.cluster, err = fleet.Connect(kubeconfig, r.id); err != nil {
		return "", err
	}
	if r.plane != nil && r.firstAlone() < r.settings.Nodes {
		_, err := r.cluster.Read(ctx)
		r.early = fleet.IsAway(err)
	}
	return kubeconfig, nil
}

// setUp waits for the API server and makes the objects.
func (r *session) setUp(ctx context.Context) error {
	if r.plane != nil {
		r.say("Waiting for the API server.")
		if err := r.plane.StartServer(ctx); err != nil {
			return err
		}
	}
	r.say(fmt.Sprintf("Creating %d Nodes with a NodeConfig each, all with the label %s=%s.",
		r.settings.Nodes, fleet.RunLabel, r.id))
	return r.cluster.SetUp(ctx, r.settings.Nodes)
}

// kubelet readies the machine for a real kubelet as the first node, and returns its command line; none where there is to be none.
func (r *session) kubelet(ctx context.Context, address string) ([]string, error) {
	name := fleet.NodeName(1)
	if r.plane == nil || r.settings.RealKubelet == settings.No {
		r.say("Every node is a process that stands in for a kubelet.")
		return nil, nil
	}
	argv, err := r.plane.Kubelet(ctx, name, address)
	if errors.Is(err, plane.ErrUnsupported) && r.settings.RealKubelet == settings.Auto {
		r.say("Every node is a process that stands in for a kubelet. A real one is left out: " + err.Error() + ".")
		return nil, nil
	}
	if err == nil {
		r.say("The node " + name + " is a real kubelet with containerd; each other is a process that stands in for one.")
	}
	return argv, err
}

// say writes a sentence that is not part of a step.
func (r *session) say(text string) { r.screen.Say(screen.Wrap(text, r.screen.Width()-1)...) }

// summarise prints what happened and says whether it is what was expected.
func (r *session) summarise() error {
	r.screen.Settle()
	results := r.player.Results()
	layout, rows := story.Summary(results)
	paint := r.screen.Palette()
	r.screen.Say("", paint.Paint(screen.Strong, "What happened, on every node:"))
	r.screen.Say(screen.Table(layout, rows, r.screen.Width()-1, paint)...)
	for _, result := range results {
		if !result.OK() {
			return errUnseen // the step's own conclusion says what
		}
	}
	return nil
}

// explain shows the end of each agent's log, which is about to be removed.
func (r *session) explain() {
	for _, n := range r.nodes {
		r.screen.Say("", "The log of the agent of "+n.Name+" and its process ends:", n.LogTail())
	}
}

// cleanUp stops and removes everything in the order in which it depends on each other.
func (r *session) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	errs := []error{crew.StopAll(ctx, r.nodes)}
	if r.cluster != nil && r.plane == nil { // the objects of a control plane of our own go with it
		errs = append(errs, r.cluster.Remove(ctx))
	}
	if r.plane != nil {
		errs = append(errs, r.plane.Close(ctx))
	}
	if r.occupied != nil {
		errs = append(errs, r.occupied.Close())
	}
	if r.dir != "" {
		errs = append(errs, os.RemoveAll(r.dir))
	}
	return errors.Join(errs...)
}
