// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command generate writes the table of calls of internal/badinput.
package main
