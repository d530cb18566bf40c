// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compat holds what the standard library offers in a later release than the library's oldest supported one.
package compat
