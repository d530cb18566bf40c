// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connect makes the clients of the agent, and the node's part in rollouts, from the agent's flags.
//
// # Concurrency
//
// The functions are called once, before anything runs.
package connect
