// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe asks a health endpoint whether the child is well under the config that it runs.
//
// The address may hold {healthzBindAddress} and {healthzPort}: they are taken from the config in use, so that a config that
// moves the endpoint is probed where it moved to.
//
// # Promise
//
// A check passes only on status 200, of the address itself: redirects, proxies of the environment and kept connections of an
// earlier child are not used. It ends with its context.
//
// # Concurrency
//
// A probe may be checked from several goroutines.
package probe
