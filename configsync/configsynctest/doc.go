// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configsynctest has in-memory counterparts of everything around a configsync.Syncer, so that an embedder can prove a
// codec, validators and probes against the promises of package configsync: a [Server] that names and serves configs, a [Disk]
// that can be full, read-only or cut off at any write, a [Child] that a config may crash, and a [Recorder] of statuses.
//
// All of them work inside a testing/synctest bubble, where minutes of trial take no time. They prove control flow; what an API
// server accepts is proven against an API server only.
package configsynctest
