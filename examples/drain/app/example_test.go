// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
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

// A rule that can't be used is an error, whatever the arguments are.
func ExampleNewCommand_wrongOptions() {
	c := app.NewCommand(app.WithRule(drain.Rule{Behavior: drain.BehaviorSkip}))
	c.SetArgs([]string{"plan", "node-1"})
	fmt.Println(c.Execute())
	// Output:
	// app.NewCommand: WithRule: Rule.Name is required (it is shown as the reason of a decision)
}
