// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API in which machines are kept.
//
// +kubebuilder:object:generate=true
// +groupName=belay.dev
package v1alpha1
