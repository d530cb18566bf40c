// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kwok pins the release of kwok that plays kubelets in tests. It holds no code.
package kwok
