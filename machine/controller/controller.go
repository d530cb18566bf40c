// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// Options are the parts and settings of a [Controller]. Cluster, Machines, Nodes and Provider are required.
type Options struct {
	// Cluster is the identity of the cluster whose machines these are. It must never change, and no two clusters of a provider may share it.
	Cluster  string
	Machines Machines
	Nodes    Nodes
	Provider provider.Provider
	// Secrets is needed where machines name some.
	Secrets Secrets
	// Drainer empties Nodes. Without one, machines with a Node are neither updated nor ended, unless Undrained.
	Drainer Drainer
	// Undrained says that Nodes need not be emptied.
	Undrained bool
	Budget    Budget
	Gates     []Gate
	Members   Members
	Starter   Starter
	// Backup comes before each change of a machine of the control plane; nil is none. Changes of these machines go one by one, with or without it.
	Backup Backup
	// ControlPlane bounds kubelet versions; without one they are not looked at.
	ControlPlane ControlPlane
	// Endpoint is the address of the API server that new instances join.
	Endpoint string
	Timeouts machine.Timeouts
	// Orphans says what becomes of instances that nobody owns; the zero value reports them.
	Orphans OrphanPolicy
	Metrics Metrics
	// ShowEvery is how long what is only shown has to be so until it is written; 0 is 30 s.
	ShowEvery time.Duration
	// CallTimeout bounds each call; 0 is 30 s.
	CallTimeout time.Duration
	// Now is the time; nil is time.Now.
	Now func() time.Time
}

// A Controller looks after the machines of one cluster. Make it with [New].
type Controller struct {
	o   Options
	can provider.Abilities

	mu      sync.Mutex
	memory  map[machine.Key]*memory
	list    map[string]provider.Instance // of the last survey, by token
	listed  time.Time                    // when it was begun
	orphans map[string]*Orphan
	unknown time.Time                // since when the workload API doesn't answer
	valid   map[string]known[string] // what the provider says of configs, by digest of what is desired
	// noGet means that the provider has said that it has no Get.
	noGet bool
}

// memory is what a controller remembers of a machine, and could lose.
type memory struct {
	pass sync.Mutex
	// tries are failures in a row; notBefore is when the provider may be called again.
	tries     int
	notBefore time.Time
	// conflicts are tokens in a row that were refused; noToken is until when no further one is tried.
	conflicts int
	noToken   time.Time
	// generation and retry are those of the last failure: another one ends the backoff.
	generation int64
	retry      string
	// polls are what the provider goes on with; pollOf is the generation and the annotation for another try that it was asked with.
	polls  []machine.Poll
	pollOf string
	// version was first seen at seen: an older list says nothing of it.
	version string
	seen    time.Time
	// unshown is since when the status says something that is not stored; zero if it doesn't.
	unshown time.Time
	// wrote is the status that was stored as wroteAt, as it was decided: a store may keep less of it.
	wrote   machine.Status
	wroteAt string
	// fresh is the token that was looked up and not found, in this pass.
	fresh string
	// pending is the token whose instance was found Pending by a look of the last pass.
	pending string
	// resumes is when a start that may have been cut off is carried forward.
	resumes resumes
	// took is the machine for which this process has taken a slot, as loan; nil if there is none. freed means that no slot of it is left from another process.
	took  *machine.Machine
	loan  string
	freed bool
	// blamed is the reason for which whoever shares the budget was told that it has failed; empty if it has not.
	blamed string
}

// requireInner notes that a decorator of package provider was given no provider.
func requireInner(check *option.Checker, name string, p provider.Provider) {
	if m, ok := p.(interface{ CheckInner() error }); ok && m.CheckInner() != nil {
		check.Require(name, nil, "a decorator around it was given no provider")
	}
}

// New returns a controller. It calls nothing yet. The error names the option that is missing or wrong.
func New(o Options) (*Controller, error) {
	check := option.For("machine/controller.New", nil)
	check.Require("Options.Cluster", o.Cluster, "the name of the cluster")
	check.Require("Options.Machines", o.Machines, "see machine/kube.NewMachines")
	check.Require("Options.Nodes", o.Nodes, "see machine/kube.NewNodes")
	check.Require("Options.Provider", o.Provider, "what makes instances")
	requireInner(check, "Options.Provider", o.Provider)
	if !o.Undrained {
		check.Require("Options.Drainer", o.Drainer, "or Undrained where Nodes need not be emptied")
	}
	if err := check.Err(); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ShowEvery <= 0 {
		o.ShowEvery = 30 * time.Second
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = 30 * time.Second
	}
	return &Controller{o: o, can: provider.AbilitiesOf(o.Provider), memory: map[machine.Key]*memory{}, orphans: map[string]*Orphan{},
		valid: map[string]known[string]{}}, nil
}

// of returns what is remembered of a machine.
func (c *Controller) of(key machine.Key) *memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.memory[key] == nil {
		c.memory[key] = &memory{}
	}
	return c.memory[key]
}

func (c *Controller) forget(key machine.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.memory, key)
}
