// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command api writes the listings of the exported API below docs/api: make api. It lowers the limits of packages that export
// fewer names, and raises none.
package main
