// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package releasecheck says what stands between the work tree and a release. Its rules are those of RELEASE.md and VERSIONING.md,
// as functions from the text of files to problems.
package releasecheck
