// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/drain/app"
)

// A drain command whose every drain leaves the pods of one namespace alone.
func ExampleNewCommand() {
	c := app.NewCommand(app.WithRule(drain.Rule{
		Name: "storage stays", Namespaces: []string{"storage"}, Behavior: drain.BehaviorSkip,
	}))
	c.SetArgs([]string{"plan"})
	fmt.Println(c.Execute())
	// Output:
	// give the names of nodes, or --selector
}

// migrator moves virtual machines to other nodes by an API of the fleet's own, which is left out here.
type migrator struct{}

// Respond asks for the move of the pod's machine, or how far it has come; asking again changes nothing.
func (migrator) Respond(_ context.Context, r drain.HookRequest) (drain.HookAnswer, error) {
	return drain.HookAnswer{Progress: drain.HookWorking, Beat: "copied 1 of 4 GiB of " + r.Pod.Name}, nil
}

// Cancel takes the request back.
func (migrator) Cancel(context.Context, drain.HookRequest) error { return nil }

// A drain command that moves the machines in namespace vms before their pods are evicted.
func ExampleWithResponder() {
	c := app.NewCommand(app.WithResponder("migrate", migrator{}), app.WithRule(drain.Rule{
		Name: "machines move first", Namespaces: []string{"vms"}, Behavior: drain.BehaviorHook, Hooks: []string{"migrate"},
	}))
	c.SetArgs([]string{"plan"})
	fmt.Println(c.Execute())
	// Output:
	// give the names of nodes, or --selector
}

// A rule that can't be used is an error, whatever the arguments are.
func ExampleNewCommand_wrongOptions() {
	c := app.NewCommand(app.WithRule(drain.Rule{Behavior: drain.BehaviorSkip}))
	c.SetArgs([]string{"plan", "node-1"})
	fmt.Println(c.Execute())
	// Output:
	// app.NewCommand: WithRule: Rule.Name is required (it is shown as the reason of a decision)
}
