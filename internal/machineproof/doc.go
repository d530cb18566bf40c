// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machineproof kills the controllers of machines as processes are killed, on a real API server and on providers that go on without them, and counts
// what is left.
package machineproof
