// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package providertest is a cloud for tests: a server of its own, with its state on disk, and faults on demand.
//
// A [Server] is an http.Handler over a directory. [New] makes the provider that it is, with all abilities; its config is [Config]. An [Admin] lets
// things go wrong ([Fault]) and sees what is there ([Inventory], [Host]). Command examples/internal/fakecloud serves it
// as a process of its own, so that
// a controller, and the cloud too, can be killed at any moment.
//
// Instances are documents: nothing runs. They are Pending, Running and Stopped by the clock of the server. No Node comes of one: a test makes it
// from what [Admin.Instances] says.
//
// # What it promises
//
// All that package provider asks for, as package machinetest checks it. Beyond that: a Delete of a token that was never used uses it up, so
// that a Create that is still on its way has no effect; an instance that was adopted while it ran keeps its ProviderID, which its Node has.
//
// # What it does not promise
//
// There is no authentication: serve it on loopback. [Unauthorized] is a fault like the others. Secrets are not sent to it, but for the
// SHA-256 of each value of [provider.Join.Bootstrap]. The names of groups are shared by all clusters. Tokens that were used up are kept for ever.
//
// # Concurrency and crashes
//
// All types may be used concurrently. An instance is written under the lock of its token alone. Before a call is answered, its effect is in files
// that are whole after any crash: each is written beside its place, synced, renamed, and its directory synced (but see [ServerOptions]). Of
// several files that belong to one effect one decides, and the next [NewServer] finishes or undoes the others. It refuses a directory that
// another server uses, and files that it does not understand. After an error of a write the server answers Unavailable until it is opened again.
// Faults and counts of calls are in memory: a restart forgets them.
package providertest
