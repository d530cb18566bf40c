// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/belayproject/belay/drain"
)

// Plan is what the plan sub-command is told.
type Plan struct {
	Connection
	Nodes
	Pods
	Responders
	Format
}

// AddFlags adds the flags with their defaults.
func (s *Plan) AddFlags(f *pflag.FlagSet) {
	s.Nodes.AddFlags(f)
	s.Pods.AddFlags(f)
	s.Responders.AddFlags(f)
	s.Format.AddFlags(f)
	s.Connection.AddFlags(f)
}

// Validate says what is wrong with the values, all of it, as a [UsageError].
func (s *Plan) Validate() error {
	var p problems
	s.validate(&p)
	return p.join()
}

func (s *Plan) validate(p *problems) {
	s.Connection.validate(p)
	s.Nodes.validate(p)
	s.Responders.validate(p)
	s.Format.validate(p)
}

// Drain is what the command itself is told.
type Drain struct {
	Plan
	Holder
	Maintenance  string
	Timeout      time.Duration
	Rate         float64
	SkipFailed   bool
	LeaveOpen    bool
	NodeTimeout  time.Duration
	DryRun       DryRun
	ReleaseAfter bool
	TakeOver     bool
}

// AddFlags adds the flags with their defaults.
func (s *Drain) AddFlags(f *pflag.FlagSet) {
	s.Plan.AddFlags(f)
	s.Holder.AddFlags(f)
	s.AddMaxNodes(f)
	f.StringVar(&s.Maintenance, "maintenance", "", "name of this maintenance: a node drained for it counts as drained for ever after; empty means a new one")
	f.DurationVar(&s.Timeout, "timeout", 0, "after this time no further eviction starts and the drain is blocked, "+
		"whatever the API server does; 0 means never")
	f.Float64Var(&s.Rate, "rate", 20, "evictions a second at most, over all nodes")
	f.DurationVar(&s.NodeTimeout, "node-timeout", 0, "the same as --timeout for each node, from when its drain begins; 0 means no end")
	f.BoolVar(&s.LeaveOpen, "leave-open", false, "leave nodes that wait for their turn schedulable; without it all are cordoned first, and each pod moves once")
	f.BoolVar(&s.SkipFailed, "skip-failed", false, "start the next node although one has failed")
	s.DryRun.AddFlag(f)
	f.BoolVar(&s.ReleaseAfter, "release-after", false, "give the drained nodes back at the end")
	addTakeOver(f, &s.TakeOver)
}

// Validate says what is wrong with the values, all of it, as a [UsageError].
func (s *Drain) Validate() error {
	var p problems
	s.Plan.validate(&p)
	s.Holder.validate(&p)
	s.validateMax(&p)
	p.need(s.Timeout >= 0, "timeout", s.Timeout, "must not be negative; 0 means no end")
	p.need(s.NodeTimeout >= 0, "node-timeout", s.NodeTimeout, "must not be negative; 0 means no end")
	p.need(s.Rate > 0, "rate", s.Rate, "must be more than 0")
	return p.join()
}

// Cordon is what the cordon and the uncordon sub-command are told.
type Cordon struct {
	Connection
	Holder
	Nodes
	DryRun DryRun
}

// AddFlags adds the flags with their defaults.
func (s *Cordon) AddFlags(f *pflag.FlagSet) {
	s.Nodes.AddFlags(f)
	s.DryRun.AddFlag(f)
	s.Holder.AddFlags(f)
	s.Connection.AddFlags(f)
}

// Validate says what is wrong with the values, all of it, as a [UsageError].
func (s *Cordon) Validate() error {
	var p problems
	s.Connection.validate(&p)
	s.Nodes.validate(&p)
	s.Holder.validate(&p)
	return p.join()
}

// Release is what the release sub-command is told.
type Release struct {
	Connection
	Holder
	Nodes
	Format
	Soak time.Duration
}

// AddFlags adds the flags with their defaults.
func (s *Release) AddFlags(f *pflag.FlagSet) {
	s.Nodes.AddFlags(f)
	s.Holder.AddFlags(f)
	s.Format.AddFlags(f)
	s.Connection.AddFlags(f)
	f.DurationVar(&s.Soak, "soak", 0, "watch the nodes for this time after; pods that don't become healthy freeze the holder's drains until resume")
}

// Validate says what is wrong with the values, all of it, as a [UsageError].
func (s *Release) Validate() error {
	var p problems
	s.Connection.validate(&p)
	s.Nodes.validate(&p)
	s.Holder.validate(&p)
	s.Format.validate(&p)
	p.need(s.Soak >= 0, "soak", s.Soak, "must not be negative")
	return p.join()
}

// Hold is what the hold sub-command is told.
type Hold struct {
	Release
	For          time.Duration
	ReleaseAfter bool
	TakeOver     bool
}

// AddFlags adds the flags with their defaults.
func (s *Hold) AddFlags(f *pflag.FlagSet) {
	s.Release.AddFlags(f)
	f.DurationVar(&s.For, "for", 0, fmt.Sprintf("how long the nodes may go without their kubelet, at most %s; must be given", drain.MaxHold))
	f.BoolVar(&s.ReleaseAfter, "release-after", false, "give the nodes back at the end")
	addTakeOver(f, &s.TakeOver)
}

// addTakeOver adds --take-over.
func addTakeOver(f *pflag.FlagSet, takeOver *bool) {
	f.BoolVar(takeOver, "take-over", false, "take nodes over from another run of this holder, which ends; without it "+
		"they are taken over only from a run that has ended on this machine")
}

// Validate says what is wrong with the values, all of it, as a [UsageError].
func (s *Hold) Validate() error {
	var p problems
	p.add(s.Release.Validate())
	p.positive("for", s.For, "30m")
	p.need(s.For <= drain.MaxHold, "for", s.For, fmt.Sprintf("must be at most %s: after it, the failure of a node must be seen", drain.MaxHold))
	return p.join()
}

// Resume is what the resume sub-command is told.
type Resume struct {
	Connection
	Holder
}

// AddFlags adds the flags with their defaults.
func (s *Resume) AddFlags(f *pflag.FlagSet) {
	s.Holder.AddFlags(f)
	s.Connection.AddFlags(f)
}

// Validate says what is wrong with the values, all of it, as a [UsageError].
func (s *Resume) Validate() error {
	var p problems
	s.Connection.validate(&p)
	s.Holder.validate(&p)
	return p.join()
}
