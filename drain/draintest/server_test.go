// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"
	"testing/synctest"

	"github.com/belayproject/belay/drain/draintest"
)

// TestTheClusterInMemoryFollowsTheServersRules runs the rules on the fake; real_test.go runs the same on a real control plane.
func TestTheClusterInMemoryFollowsTheServersRules(t *testing.T) {
	draintest.TestServer(t, draintest.NewFixture, synctest.Test)
}
