// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree reads a config as the value that it is, without a type: what packages fields and layers have in common.
package tree
