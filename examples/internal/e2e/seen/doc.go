// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package seen is what a fake kubelet writes down at its start and a test reads: one [Line] of JSON per start, oldest first.
package seen
