// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package e2e

// race makes the programs look for data races where the test does.
const race = false
