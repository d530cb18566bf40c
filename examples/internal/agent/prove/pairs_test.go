// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/internal/agent/prove"
)

// A Program is what a Syncer asks, and the store of the agent keeps its answers.
var (
	_ configsync.Inspector = (*prove.Program)(nil)
	_ prove.Store          = (*checkpoint.Store)(nil)
)
