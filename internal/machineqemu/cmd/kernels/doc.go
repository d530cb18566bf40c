// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kernels brings two kernels for the tests with virtual machines into the user's cache.
package main
