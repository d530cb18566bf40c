// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// The controller of a fleet with a change freeze in December, and machines of a provider in this process.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/belayproject/belay/examples/controller/app"
	"github.com/belayproject/belay/machine/provider/providertest"
	"github.com/belayproject/belay/rollout"
)

type freeze struct{}

func (freeze) Verdict(context.Context) rollout.Verdict {
	if time.Now().Month() == time.December {
		return rollout.Verdict{Answer: rollout.Deny, Reason: "ChangeFreeze", Message: "no change in December"}
	}
	return rollout.Verdict{Answer: rollout.Allow}
}

func main() {
	cloud, err := providertest.New(providertest.Options{URL: "http://127.0.0.1:8080"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(app.Run(app.NewCommand(
		app.WithGate("change-freeze", freeze{}),
		app.WithProvider("mycloud", cloud),
	)))
}
