// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/belayproject/belay/examples/internal/agent/update"
)

// SourceShadow is the kind of source in which the orders of the node's NodeShadow say which config is wanted.
const SourceShadow = "shadow"

// minLease is the least value of --lease-duration: below it a slow API server would cost a healthy agent its Lease.
const minLease = 5 * time.Second

// Fleet is how an agent takes part in rollouts.
type Fleet struct {
	// Hooks is the directory of the hooks by which the node is updated. Empty means that there are none.
	Hooks string
	// VerifyFor is the healthy time that ends an update, VerifyEvery the time between two checks, VerifyWithin what both
	// may take.
	VerifyFor, VerifyEvery, VerifyWithin time.Duration
	// ApplyTimeout bounds one update, boots not counted.
	ApplyTimeout time.Duration
	// RevertBroken has a node that was not healthy in time go back by itself.
	RevertBroken bool
	// LeaseNamespace is that of the node's Lease. Empty means that none is kept.
	LeaseNamespace string
	// Lease is how long an agent that is silent counts as alive.
	Lease time.Duration
	// Guard is the name of the admission policy that holds agents to their own nodes. Empty means that nobody asks whether
	// it is there.
	Guard string
	// Updater is the name of the program's own updater, which no flag sets. Empty means that there is none.
	Updater string
}

// AddFlags adds the flags with their defaults.
func (r *Fleet) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&r.Hooks, "hooks", "", "directory of the programs by which this node is updated when its NodeShadow orders it: "+
		strings.Join(update.Verbs(), ", ")+"; the first three are needed")
	f.DurationVar(&r.VerifyFor, "verify-for", time.Minute, "how long the node must be healthy after an update")
	f.DurationVar(&r.VerifyEvery, "verify-every", 10*time.Second, "time between two looks at its health")
	f.DurationVar(&r.VerifyWithin, "verify-within", 10*time.Minute, "how long it may take until it was healthy for --verify-for")
	f.DurationVar(&r.ApplyTimeout, "apply-timeout", 30*time.Minute, "longest time that an update may take, boots not counted")
	f.BoolVar(&r.RevertBroken, "revert-broken", false, "go back by itself from an update after which the node is not healthy; otherwise the controller decides")
	f.StringVar(&r.LeaseNamespace, "lease-namespace", "", "namespace of the Lease that keeps a second agent of this node out of rollouts; empty means none is kept")
	f.DurationVar(&r.Lease, "lease-duration", 40*time.Second, "how long an agent that is silent counts as alive; at least "+minLease.String())
	f.StringVar(&r.Guard, "guard-policy", "", "name of the admission policy without which this agent takes no part in rollouts; needs --lease-namespace")
}

func (r *Fleet) validateFleet(p *problems) {
	if r.Hooks != "" {
		p.need(filepath.IsAbs(r.Hooks), "hooks", r.Hooks, "must be an absolute path, such as /etc/belay-agent/hooks")
		_, err := update.Hooks(r.Hooks, nil)
		p.need(!filepath.IsAbs(r.Hooks) || err == nil, "hooks", r.Hooks, fmt.Sprint("must be a directory of hooks: ", text(err)))
	}
	p.need(r.Hooks == "" || r.Updater == "", "hooks", r.Hooks, fmt.Sprintf("must be empty: the updater %q of this program brings the node to a revision", r.Updater))
	p.positive("verify-for", r.VerifyFor, "1m")
	p.positive("verify-every", r.VerifyEvery, "10s")
	p.need(r.VerifyWithin > r.VerifyFor, "verify-within", r.VerifyWithin, fmt.Sprintf("must be more than --verify-for, which is %s", r.VerifyFor))
	p.positive("apply-timeout", r.ApplyTimeout, "30m")
	p.need(r.Lease >= minLease, "lease-duration", r.Lease, "must be at least "+minLease.String())
	if r.LeaseNamespace != "" {
		why := validation.IsDNS1123Label(r.LeaseNamespace)
		p.need(len(why) == 0, "lease-namespace", r.LeaseNamespace, strings.Join(why, "; "))
	}
	p.need(r.Guard == "" || r.LeaseNamespace != "", "guard-policy", r.Guard, "must be empty without --lease-namespace: the policy is asked about a Lease there")
}

// Rollouts reports whether this agent takes part in rollouts.
func (r *Run) Rollouts() bool { return r.Source == SourceShadow && r.StateDir != "" || r.Updates() }

// Updates reports whether hooks or an updater of the program's own bring the node to a revision.
func (r *Fleet) Updates() bool { return r.Hooks != "" || r.Updater != "" }

// validateRollouts checks what a supervised child and rollouts have in common. A NodeShadow orders one thing.
func (r *Run) validateRollouts(p *problems) {
	r.validateFleet(p)
	p.need(r.Hooks == "" || r.Source != SourceShadow, "hooks", r.Hooks,
		"must be empty with --source=shadow: the revisions that a NodeShadow orders are configs, or what hooks apply, not both")
	by := "--hooks"
	if r.Updater != "" {
		by = fmt.Sprintf("the updater %q", r.Updater)
	}
	p.need(r.Updater == "" || r.Source != SourceShadow, "source", r.Source,
		fmt.Sprintf("must not be shadow: the updater %q brings the node to the revisions that a NodeShadow orders", r.Updater))
	p.need(!r.Updates() || r.Kubeconfig != "", "kubeconfig", r.Kubeconfig, "must name a file, because "+by+" asks for a NodeShadow")
	p.need(!r.Updates() || r.StateDir != "", "state-dir", r.StateDir, "must name a directory, because "+by+" keeps a record of each update")
}

// Update is what the update sub-command needs.
type Update struct {
	Fleet
	NodeName, Kubeconfig string
	// StateDir holds all state.
	StateDir string
	// RetryMin and RetryMax bound the pause after trouble with the API server.
	RetryMin, RetryMax time.Duration
}

// Update is what of r is about rollouts.
func (r *Run) Update() *Update {
	return &Update{Fleet: r.Fleet, NodeName: r.NodeName, Kubeconfig: r.Kubeconfig, StateDir: r.StateDir, RetryMin: r.RetryMin, RetryMax: r.RetryMax}
}

// AddFlags adds the flags with their defaults, those of Fleet included.
func (u *Update) AddFlags(f *pflag.FlagSet) {
	u.Fleet.AddFlags(f)
	f.StringVar(&u.NodeName, "node-name", "", "name of this node")
	f.StringVar(&u.Kubeconfig, "kubeconfig", "", "kubeconfig of the API server; empty means the pod that this runs in")
	f.StringVar(&u.StateDir, "state-dir", "", "directory for all state of the agent; it must outlive boots")
	f.DurationVar(&u.RetryMin, "retry-min", time.Second, "shortest pause after trouble with the API server")
	f.DurationVar(&u.RetryMax, "retry-max", 2*time.Minute, "longest pause after trouble with the API server")
}

// Validate says what is wrong with the values, all of it, joined.
func (u *Update) Validate() error {
	var p problems
	u.validateFleet(&p)
	p.need(u.Updates(), "hooks", u.Hooks, "must name the directory of the hooks, such as /etc/belay-agent/hooks")
	p.need(u.NodeName != "", "node-name", u.NodeName, "must be the name of this node")
	p.need(filepath.IsAbs(u.StateDir), "state-dir", u.StateDir, "must be an absolute path, such as /var/lib/belay-agent")
	if u.Kubeconfig != "" {
		_, err := os.Stat(u.Kubeconfig)
		p.need(err == nil, "kubeconfig", u.Kubeconfig, "must be a file that can be read, or empty in a pod: "+text(err))
	}
	p.positive("retry-min", u.RetryMin, "1s")
	p.order("retry-min", "retry-max", u.RetryMin, u.RetryMax)
	return errors.Join(p...)
}
