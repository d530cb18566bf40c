// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
)

// Fleet is what the fleet command needs.
type Fleet struct {
	// ControlPlane is a command that starts a control plane with kwok.
	ControlPlane string
	// Controller is the path of the reference controller. Empty means the file controller beside the demo's own.
	Controller string
	// Nodes is how many nodes there are.
	Nodes int
	// Page is the address of the fleet page. Where it is taken, another port is.
	Page string
	// Timeout bounds each act; zero means one that grows with the number of nodes. Pause is how long its end is shown on a terminal, Stay how long the
	// fleet stays there at the end of all.
	Timeout, Pause, Stay time.Duration
}

// minFleet is how many nodes the three stages need, maxFleet how many have been tried.
const minFleet, maxFleet = 10, 2000

// AddFlags makes flags of the settings, with their defaults.
func (s *Fleet) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&s.ControlPlane, "control-plane", "",
		"start a control plane with this command (arguments separated by spaces); it must have kube-controller-manager, kube-scheduler and kwok")
	f.StringVar(&s.Controller, "controller", "", "path of the reference controller (default: controller, beside the demo's own file)")
	f.IntVar(&s.Nodes, "nodes", 50, "how many nodes there are")
	f.StringVar(&s.Page, "page", "127.0.0.1:8474", "loopback address of the fleet page; another port is used where that one is taken")
	f.DurationVar(&s.Timeout, "step-timeout", 0, "how long to wait for what a rollout must lead to (default: 2m and 5s for each node)")
	f.DurationVar(&s.Pause, "pause", 3*time.Second, "how long to show the end of a rollout on a terminal")
	f.DurationVar(&s.Stay, "stay", 0, "how long the fleet and its page stay at the end, to look around")
}

// Complete fills in what is missing and checks everything. The error names each flag that is wrong, and what would be right.
func (s *Fleet) Complete() error {
	if s.Controller == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("looking for the controller: %w; give its path with --controller", err)
		}
		s.Controller = filepath.Join(filepath.Dir(self), "controller")
	}
	if s.Timeout == 0 {
		s.Timeout = 2*time.Minute + time.Duration(s.Nodes)*5*time.Second
	}
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need(s.ControlPlane != "", "give --control-plane")
	need(s.Nodes >= minFleet && s.Nodes <= maxFleet, "--nodes must be %d to %d, got %d", minFleet, maxFleet, s.Nodes)
	need(s.Timeout > 0, "--step-timeout must be more than 0, got %s", s.Timeout)
	need(s.Pause >= 0 && s.Stay >= 0, "--pause and --stay must not be negative, got %s and %s", s.Pause, s.Stay)
	_, err := os.Stat(s.Controller)
	need(err == nil, "there is no controller at %q: build examples/controller, or give its path with --controller", s.Controller)
	return errors.Join(errs...)
}
