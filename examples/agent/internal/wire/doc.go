// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire picks the parts of a Syncer that the agent's flags ask for: source, fetcher, reporter, probes, acknowledgement, events.
//
// # Concurrency
//
// The functions are called once, before anything runs.
package wire
