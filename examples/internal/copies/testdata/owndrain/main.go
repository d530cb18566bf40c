// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// A drain that leaves the pods of the storage namespace in place.
package main

import (
	"os"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/drain/app"
)

func main() {
	os.Exit(app.Run(app.NewCommand(app.WithRule(drain.Rule{
		Name: "storage stays", Namespaces: []string{"storage"}, Behavior: drain.BehaviorSkip,
	}))))
}
