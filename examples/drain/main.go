// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/belayproject/belay/examples/drain/app"
)

func main() {
	os.Exit(app.Run(app.NewCommand()))
}
