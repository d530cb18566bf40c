// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/examples/internal/appoption"
	drainsettings "github.com/belayproject/belay/examples/internal/drain/settings"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/cluster"
)

// An Option adds a part to the command that NewCommand makes.
type Option func(*parts)

// parts are what the program adds to kubectl-belay.
type parts struct {
	commands []func(connect func() (*rest.Config, error)) *cobra.Command
	problems appoption.Problems
}

// WithCommand adds a sub-command. It gets the flags --kubeconfig and --context; connect returns the connection that they name, once they are parsed.
func WithCommand(build func(connect func() (*rest.Config, error)) *cobra.Command) Option {
	return func(p *parts) {
		if p.problems.Given("WithCommand", build); build != nil {
			p.commands = append(p.commands, build)
		}
	}
}

// addTo adds the sub-commands of the program to root.
func (p *parts) addTo(root *cobra.Command) {
	taken := map[string]bool{}
	for _, c := range root.Commands() {
		taken[c.Name()] = true
	}
	for _, build := range p.commands {
		var where drainsettings.Cluster
		c := build(func() (*rest.Config, error) { return cluster.Config(where) })
		if c == nil {
			p.problems.Wrong("WithCommand", "the function returns nil (return a command)")
			continue
		}
		appoption.Named(&p.problems, "WithCommand", c.Name(), c, taken, "inventory")
		taken[c.Name()] = true
		where.AddFlags(c.Flags())
		root.AddCommand(c)
	}
}
