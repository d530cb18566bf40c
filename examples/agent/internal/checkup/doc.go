// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkup looks at a node for the doctor: its flags, its state directory, the running agent, the unit, the clock, the API server. It
// works without an agent, beside one, and changes nothing.
//
// # Concurrency
//
// The functions may be called from several goroutines.
package checkup
