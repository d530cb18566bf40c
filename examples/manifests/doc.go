// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests embeds the manifests that a cluster needs before any program of belay runs in it. README.md describes all manifests.
package manifests
