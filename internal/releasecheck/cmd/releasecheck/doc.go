// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command releasecheck prints what stands between the work tree and the release of a version, and ends with status 1 if there is
// something. It runs in the root of the repository.
package main
