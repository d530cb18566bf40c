// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page lays out text for people on 120 columns.
package page
