// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belayproject/belay/examples/controller/app"
	"github.com/belayproject/belay/machine/provider/providertest"
	"github.com/belayproject/belay/rollout"
)

// freeze begins no node in December.
type freeze struct{}

func (freeze) Verdict(context.Context) rollout.Verdict {
	if time.Now().Month() == time.December {
		return rollout.Verdict{Answer: rollout.Deny, Reason: "ChangeFreeze", Message: "no change in December"}
	}
	return rollout.Verdict{Answer: rollout.Allow}
}

// A controller with a gate and a provider of the fleet's own. It says what its command line lacks at once.
func ExampleNewCommand() {
	cloud, err := providertest.New(providertest.Options{URL: "http://127.0.0.1:8080"})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := app.NewCommand(app.WithGate("change-freeze", freeze{}), app.WithProvider("mycloud", cloud))
	c.SetArgs([]string{"--machine-provider=mycloud"})
	fmt.Println(c.Execute())
	// Output:
	// the command line is wrong
	// --cluster="": must name this cluster where --machine-provider is given, such as prod-eu-1
}

// Options that can't be used are one error, whatever the arguments are.
func ExampleNewCommand_wrongOptions() {
	c := app.NewCommand(app.WithGate("", freeze{}))
	c.SetArgs([]string{"--domains=workers"})
	fmt.Println(c.Execute())
	// Output:
	// app.NewCommand: WithGate: name is required (such as "change-freeze")
}
