// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package settings holds the flags of the demo and what makes sense of them.
package settings
