// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package settings holds what the command line of drain says: flags, their checks, and the policy that they and a file make.
//
// Where a flag of kubectl drain has a meaning here it has the same name. One whose meaning would be dangerous, or is not there, is
// refused with what to do instead, so that a line that was copied is never half obeyed.
//
// Each value is made for one run and used by one goroutine.
package settings
