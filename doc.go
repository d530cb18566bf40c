// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package belay is the root of a library of composable reconcilers for the life of a Kubernetes node.
// It holds no code: import one of the packages below it.
package belay
