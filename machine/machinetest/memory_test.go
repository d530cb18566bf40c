// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"testing"
)

// The provider in memory keeps all promises, and nothing of it is skipped.
func TestMemory(t *testing.T) {
	Run(t, new(Memory).Harness())
}
