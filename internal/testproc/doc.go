// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testproc helps tests that start processes, read what they write, and look for what is left of them.
package testproc
