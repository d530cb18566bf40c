// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install applies the definitions, rights and admission policies of belay to a cluster, by server-side apply.
//
// # Crash behaviour
//
// It may be killed at any time: applying again ends at the same objects.
package install
