// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package evictionapi tests that the library's own types of the EvictionRequest API have the fields of those of
// k8s.io/api, which the library's module is too old for.
package evictionapi
