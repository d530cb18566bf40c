// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Machines is what the controller is told of machines.
type Machines struct {
	// Provider is the program that makes them, of package machine/provider/exec; empty means that machines are not looked after.
	Provider string
	// Args stand before the verb, Env are the names of the variables of this process that the program gets, besides PATH.
	Args, Env []string
	// Cluster is the identity of the cluster, by which the provider keeps its machines from those of others.
	Cluster string
	// Namespace holds the machines, and the Secrets that they name.
	Namespace string
	// Endpoint is the address of the API server that new instances join.
	Endpoint string
	// Domain is the disruption domain whose ledger bounds how many machines are disturbed at a time.
	Domain string
}

// Agents is what the controller is told of the agents of nodes.
type Agents struct {
	// Namespace holds their Leases; empty means that they are not looked at.
	Namespace string
	// Lease is how long one that is silent counts as alive, GCAfter how long a Lease must have been silent until it is deleted. Until then its agent
	// counts as lost, which is what people are told by: the Lease of a Node that is deleted goes with it, however long this is.
	Lease, GCAfter time.Duration
}

func (m *Machines) addFlags(f *pflag.FlagSet) {
	f.StringVar(&m.Provider, "machine-provider", "", "program that makes machines, absolute or in PATH, see package machine/provider/exec; empty means that machines are not looked after")
	f.StringSliceVar(&m.Args, "machine-provider-args", nil, "arguments of that program before the verb, separated by commas")
	f.StringSliceVar(&m.Env, "machine-provider-env", nil, "names of variables of this process that the program gets besides PATH, separated by commas")
	f.StringVar(&m.Cluster, "cluster", "", "identity of this cluster for the provider, never to be changed; no two clusters of a provider may share it")
	f.StringVar(&m.Namespace, "machine-namespace", "belay-machines", "namespace of the machines, and of the Secrets that they name")
	f.StringVar(&m.Endpoint, "machine-endpoint", "", "address of the API server that new instances join, such as https://api.example.com:6443")
	f.StringVar(&m.Domain, "machine-domain", "", "disruption domain whose ledger bounds how many machines are disturbed at a time; empty means the first of --domains")
}

func (a *Agents) addFlags(f *pflag.FlagSet) {
	f.StringVar(&a.Namespace, "agent-namespace", "", "namespace of the Leases of agents, such as belay-agents: who is alive is counted, and what is left of agents that are gone is deleted; empty means neither")
	f.DurationVar(&a.Lease, "agent-lease-duration", 40*time.Second, "how long an agent that is silent counts as alive: its own --lease-duration")
	f.DurationVar(&a.GCAfter, "agent-gc-after", 7*24*time.Hour, "how long a Lease of an agent must have been silent until it is deleted")
}

func (m *Machines) validate(domains []string) error {
	if m.Provider == "" {
		if m.Cluster != "" || m.Endpoint != "" || m.Domain != "" || len(m.Args) > 0 || len(m.Env) > 0 {
			return &FlagError{Flag: "machine-provider", Want: "must name the program where --cluster or a flag that begins with --machine- is given"}
		}
		return nil
	}
	var errs []error
	if m.Cluster == "" {
		errs = append(errs, &FlagError{Flag: "cluster", Want: "must name this cluster where --machine-provider is given, such as prod-eu-1"})
	}
	if why := validation.IsValidLabelValue(m.Cluster); len(why) > 0 {
		errs = append(errs, &FlagError{Flag: "cluster", Value: m.Cluster, Want: strings.Join(why, "; ")})
	}
	if why := validation.IsDNS1123Label(m.Namespace); len(why) > 0 {
		errs = append(errs, &FlagError{Flag: "machine-namespace", Value: m.Namespace, Want: strings.Join(why, "; ")})
	}
	if m.Domain == "" && len(domains) > 0 {
		m.Domain = domains[0]
	}
	if !slices.Contains(domains, m.Domain) {
		errs = append(errs, &FlagError{Flag: "machine-domain", Value: m.Domain, Want: fmt.Sprintf("must be one of --domains, %q", domains)})
	}
	for _, name := range m.Env {
		if why := validation.IsEnvVarName(name); len(why) > 0 {
			errs = append(errs, &FlagError{Flag: "machine-provider-env", Value: name, Want: "must be the name of a variable: " + strings.Join(why, "; ")})
		}
	}
	return errors.Join(errs...)
}

func (a *Agents) validate(namespace string) error {
	if a.Namespace == "" {
		return nil
	}
	var errs []error
	if why := validation.IsDNS1123Label(a.Namespace); len(why) > 0 {
		errs = append(errs, &FlagError{Flag: "agent-namespace", Value: a.Namespace, Want: strings.Join(why, "; ")})
	}
	if a.Namespace == namespace {
		errs = append(errs, &FlagError{Flag: "agent-namespace", Value: a.Namespace, Want: "must not be --namespace: an agent could reach the Leases by which leaders are elected"})
	}
	if a.Lease < minLease {
		errs = append(errs, &FlagError{Flag: "agent-lease-duration", Value: a.Lease.String(), Want: "must be at least " + minLease.String()})
	}
	if a.GCAfter < 2*a.Lease {
		errs = append(errs, &FlagError{Flag: "agent-gc-after", Value: a.GCAfter.String(), Want: fmt.Sprintf("must be at least twice --agent-lease-duration, %s", 2*a.Lease)})
	}
	return errors.Join(errs...)
}
