// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster reads from an API server what the reports are made of, and asks for verbs.
//
// It writes in one way alone: Ask patches spec.verb of a Rollout, once.
//
// # Concurrency
//
// A Cluster may be used by several goroutines. Each call ends with its context.
package cluster
