// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden compares what a test has got with a file of its package's testdata.
package golden
