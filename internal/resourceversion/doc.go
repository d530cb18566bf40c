// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourceversion compares resource versions, as KEP-5504 allows since Kubernetes 1.35. It stands in for the package of
// that name in k8s.io/apimachinery, which the oldest supported release does not have.
package resourceversion
