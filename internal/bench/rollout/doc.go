// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command rollout measures package rollout: what a pass of its planner costs in a large fleet, and what its detectors find and miss.
//
//	R3  Plan over 5,000 nodes in 20 groups: time and garbage, quiet, with one event, with ten, and with a rollout that begins
//	R7  detectors: how many rollouts of good and bad revisions they halt, and after how many failures, over 1,500 rollouts for each cell
package main
