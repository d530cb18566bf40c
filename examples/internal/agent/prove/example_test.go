// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"context"
	"fmt"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/examples/internal/agent/prove"
)

// The program here is a shell that looks for a word. In production it is what is configured, with the flag that has it check a config and exit.
func Example() {
	ctx := context.Background()
	program, err := prove.New(prove.Options{
		Path: "/bin/sh", Args: []string{"-c", "grep -q '^workers: [1-9]' || exit 65"},
		Version: "v1.0.0", Store: &configsynctest.Disk{}, // a *checkpoint.Store in production
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"workers: 4\n", "workers: 0\n"} {
		o := configsync.Object{Data: map[string]string{"agent": text}}
		fmt.Println(program.Inspect(ctx, "agent", o)) // as one of Options.Proofs
	}
	// Output:
	// <nil>
	// proving config sha256:89ef87d4873c56538d92cfb0666a7832003dc36764787b7aac6d65df777d03dd for version "v1.0.0": the program refuses it with exit status 65 after less than 1s
}
