// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gen writes the table of the library's exported functions, types and interfaces that internal/badinput calls.
package gen
