// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olderservers pins the Kubernetes programs of an older minor release, for the skew tests. It holds no code.
package olderservers
