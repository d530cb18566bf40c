// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"
)

// The values of RealKubelet.
const (
	Auto = "auto"
	Yes  = "yes"
	No   = "no"
)

// maxNodes keeps the table readable and the machine alive.
const maxNodes = 50

// Settings are the flags of the demo.
type Settings struct {
	// Kubeconfig names a cluster of the user's, ControlPlane the command that starts one of the demo's own. One of them is set.
	Kubeconfig, ControlPlane string
	// Agent is the path of the reference agent. Empty means the file agent beside the demo's own.
	Agent string
	// Nodes is how many nodes are played.
	Nodes int
	// Trial and Threshold travel with every config.
	Trial     time.Duration
	Threshold int
	// StepTimeout bounds each step; Pause is how long its end is shown on a terminal.
	StepTimeout, Pause time.Duration
	// RealKubelet says whether one node is a real kubelet: Auto, Yes or No.
	RealKubelet string
}

// AddFlags makes flags of the settings, with their defaults.
func (s *Settings) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&s.Kubeconfig, "kubeconfig", "",
		"use the cluster that this file names; all that the demo makes there is labelled, and removed at the end")
	f.StringVar(&s.ControlPlane, "control-plane", "",
		"start a control plane of the demo's own with this command (arguments separated by spaces)")
	f.StringVar(&s.Agent, "agent", "", "path of the reference agent (default: agent, beside the demo's own file)")
	f.IntVar(&s.Nodes, "nodes", 4, "how many nodes to play")
	f.DurationVar(&s.Trial, "trial", 4*time.Second, "healthy time after which a config is promoted, 1s or more")
	f.IntVar(&s.Threshold, "crash-loop-threshold", 2, "how many crashes a config on trial is forgiven, 0 to 10")
	f.DurationVar(&s.StepTimeout, "step-timeout", 2*time.Minute, "how long to wait for what a step must lead to")
	f.DurationVar(&s.Pause, "pause", 3*time.Second, "how long to show the end of a step on a terminal")
	f.StringVar(&s.RealKubelet, "real-kubelet", Auto,
		"whether one node is a real kubelet: auto (where this machine can run one), yes or no")
}

// Complete fills in the path of the agent and checks everything. The error names each flag that is wrong, and what would be right.
func (s *Settings) Complete() error {
	if s.Agent == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("looking for the agent: %w; give its path with --agent", err)
		}
		s.Agent = filepath.Join(filepath.Dir(self), "agent")
	}
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need((s.Kubeconfig == "") != (s.ControlPlane == ""), "give one of --kubeconfig and --control-plane")
	need(s.Nodes >= 1 && s.Nodes <= maxNodes, "--nodes must be 1 to %d, got %d", maxNodes, s.Nodes)
	need(s.Trial >= time.Second, "--trial must be 1s or more, got %s", s.Trial)
	need(s.Threshold >= 0 && s.Threshold <= 10, "--crash-loop-threshold must be 0 to 10, got %d", s.Threshold)
	need(s.StepTimeout > s.Trial, "--step-timeout must be more than --trial, got %s", s.StepTimeout)
	need(s.Pause >= 0, "--pause must not be negative, got %s", s.Pause)
	need(slices.Contains([]string{Auto, Yes, No}, s.RealKubelet), "--real-kubelet must be auto, yes or no, got %q", s.RealKubelet)
	need(s.RealKubelet != Yes || s.Kubeconfig == "",
		"--real-kubelet=yes needs --control-plane: the demo brings no kubelet into a cluster of yours")
	_, err := os.Stat(s.Agent)
	need(err == nil, "there is no agent at %q: build examples/agent, or give its path with --agent", s.Agent)
	return errors.Join(errs...)
}
