// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package file keeps machines in a directory, so that the machines of a first cluster are made by the same reconcilers before there is an API server, and then
// moved into it.
//
// A [Store] reads Machine manifests, *.yaml, *.yml and *.json, as one would apply them. What it has to remember of each, it keeps below ".belay" in the same
// directory: status, finalizer, ProviderID, a UID. To move machines into a cluster, create what [Store.Export] returns there: the ProviderID
// in each spec is enough for its instance to be found again, and nothing is created or deleted at the provider. Machines are moved at rest: Export refuses those
// that are being made, changed or ended.
//
// # Promise
//
//   - A write is acknowledged when it is on the disk: to a new file, synced, renamed, the directory synced.
//   - One process has the directory at a time: [Open] fails where another one has it.
//   - A manifest that is gone, or can't be read, deletes nothing: its machine stays as it was, see [Store.Unreferenced]. To delete is [Store.Delete].
//   - Manifests are never written. What they say is kept as an API server would keep it: keys in their order, so that the digest of a config is the same there.
//   - A ProviderID that was found out stays, whatever a manifest says.
//
// # No promise
//
// There is no admission: of what an API server would check, only what can't be decoded is refused.
//
// # Concurrency and crashes
//
// All methods may be called concurrently. After a crash each record is as it was before the write that was cut off, or after it.
package file
