// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/belayproject/belay/examples/metrics"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/exec"
)

func main() {
	path := flag.String("machine-provider", "", "the program that makes machines; none are made without it")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler(), *path); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path string) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{LeaderElection: true, LeaderElectionID: "example-manager"})
	if err != nil {
		return err
	}
	p := parts{drain: metrics.NewDrain(), rollout: metrics.NewRollout(), machine: metrics.NewMachine()}
	ctrlmetrics.Registry.MustRegister(p.drain, p.rollout, p.machine)
	if path != "" {
		if p.provider, err = exec.New(ctx, exec.Options{Path: path}); err != nil {
			return err
		}
	}
	if err := p.addTo(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// parts are what the three take besides the manager.
type parts struct {
	drain    *metrics.Drain
	rollout  *metrics.Rollout
	machine  *metrics.Machine
	provider provider.Provider // nil makes no machines
}

// addTo adds all three to a manager that has not been started.
func (p parts) addTo(ctx context.Context, mgr ctrl.Manager) error {
	drainer, err := addDrain(ctx, mgr, p.drain)
	if err != nil {
		return err
	}
	if err := addRollout(ctx, mgr, drainer, p.rollout); err != nil {
		return err
	}
	if p.provider == nil {
		return nil
	}
	return addMachine(ctx, mgr, drainer, p.provider, p.machine)
}
