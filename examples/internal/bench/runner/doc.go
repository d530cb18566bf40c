// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runner is what the benchmarks share: flags, the choice of scenarios, figures, and the line that each figure is printed on:
//
//	bench AREA.NAME ours=… peer=… ratio=… bar=… ok|SHORT
//
// Absolute times are never a verdict: ratios, counts and shares are.
package runner
