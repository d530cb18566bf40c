// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package settings has the flags of the controller, and says what is wrong with their values.
//
// # Concurrency
//
// A value belongs to one goroutine until it was validated, and does not change after that.
package settings
