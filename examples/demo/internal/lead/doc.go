// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lead runs the reference controller for the demo, as a process with its fleet page, and reads what it counts.
package lead
