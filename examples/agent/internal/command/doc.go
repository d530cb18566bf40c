// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command holds the sub-commands of the agent besides run: status, forget-bad and use-local for a node, check,
// configmap and sign for the author of a config.
//
// # Promise
//
//   - What a command prints goes to its standard output, errors are returned.
//   - status changes nothing. forget-bad and use-local say what they did and what follows.
//   - check judges with the code that judges on a node.
//
// # Concurrency
//
// Each command is made for one run.
package command
