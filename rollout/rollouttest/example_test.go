// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest_test

import (
	"context"
	"fmt"

	"github.com/belayproject/belay/rollout/rollouttest"
)

// What a ledger that is written without compare-and-swap leads to.
func ExampleExplore() {
	r, err := rollouttest.Explore(context.Background(), rollouttest.Options{Nodes: 3, Cap: 1, Attempts: 3})
	fmt.Println(r.States, r.Violation, err)

	r, err = rollouttest.Explore(context.Background(), rollouttest.Options{Nodes: 2, Cap: 1, Attempts: 2, Without: rollouttest.LedgerCAS})
	fmt.Println(r.Violation, err)
	for _, step := range r.Trace {
		fmt.Println(" ", step)
	}
	// Output:
	// 2428  <nil>
	// I1: n0 is disrupted and has no slot <nil>
	//   admit n0
	//   grant n0 a1
	//   commit n0 a1
	//   admit n1
}
