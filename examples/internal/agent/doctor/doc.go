// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor names what keeps a node from being brought to its config, and what helps: half-configured setups above
// all, which would otherwise be silent.
//
// [Examine] is a pure function of [Facts]. What could not be looked at is a finding too, and never a clean bill.
// [LookAtDir] and [LookAtClock] look at the machine; apiserver.Look at the API server; configsync.Explain reads the
// records. None of them needs a running agent, and none of them changes anything.
//
// No finding holds a value of a config.
//
// # Concurrency
//
// All functions may be called from several goroutines.
package doctor
