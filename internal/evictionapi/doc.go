// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package evictionapi holds the objects of Kubernetes' EvictionRequest API (KEP-4563, lifecycle.k8s.io/v1alpha1, since
// Kubernetes 1.37) as this library reads and writes them.
//
// The library's oldest k8s.io/api has neither these types nor the two fields of a Pod that belong to them. Clients are
// therefore dynamic, and objects are decoded from and encoded to unstructured ones. A field that a newer server adds is
// dropped when it is decoded: write a status by a strategic merge patch, which leaves such fields alone.
//
// The package keeps no state. Its functions may be called concurrently and do not change their arguments.
package evictionapi
