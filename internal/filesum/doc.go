// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filesum computes the digest of a file, and computes it again only after the file has changed.
//
// A program of 80 MB takes a fraction of a second to read. What is asked for at each start must not cost that.
package filesum
