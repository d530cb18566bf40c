// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restclient readies a rest.Config, and the HTTP client of an embedder, for clients that watch.
package restclient
