// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package mutate

// limitMemory does nothing here.
func limitMemory(int) {}
