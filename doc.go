// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package belay is the root of a library of composable reconcilers for the life of a Kubernetes node. It holds one
// type, the error of a call whose arguments are missing: import one of the packages below it into a custom kubelet, a
// node agent or a fleet controller.
//
// To belay is to make fast, to hold a climber so that a fall is short, and to cancel an order: checkpoint,
// last-known-good and abort are what every package here is about.
//
// # Packages
//
// Each works alone. The word after the name is its stability; "planned" means that it does not exist yet.
//
//	checkpoint                 experimental  named records on a node's disk; an acknowledged write survives any crash
//	lkg                        experimental  which config a node uses: on trial, last known good, or rejected
//	configsync                 experimental  brings a node to the config that the API server names; a bad one never keeps it down
//	configsync/v1alpha1        experimental  the NodeConfig API: what a node should run, and what it does run
//	configsync/kube            experimental  sources, fetching and reporting over the API server
//	configsync/file            experimental  the same from a directory, for nodes without an API server
//	configsync/restart         experimental  how a process takes up a new config: by exit, or as a supervised child
//	configsync/kubelet         experimental  what an agent knows of kubelets: node probes, and what lies below a config
//	configsync/restart/systemd experimental  restarts a process that has a unit of its own, over D-Bus, and says whether systemd would bring it back
//	configsync/fields          experimental  what a change of each field asks of a node: live, reload, restart, drain first, forbidden
//	configsync/layers          experimental  defaults, init, shared, node and flags over one another, with the origin of each field
//	configsync/signed          experimental  detached signatures of configs, checked with keys from the node's own disk
//	identity                   experimental  which processes are alive, by Lease, without trust in clocks or names
//	identity/nodeauth          experimental  which node is calling, and what it may write
//	identity/nodeauth/kube     experimental  installs the policy of nodeauth, then the rights it guards
//	drain                      experimental  empties or holds nodes within every PodDisruptionBudget, with a reason for every pod that stays
//	drain/evictionrequest      experimental  the controller and the default responder of Kubernetes' EvictionRequest API
//	drain/kube                 experimental  the cache over shared informers and the client that a drain needs
//	drain/maintenance          experimental  carries out NodeMaintenance objects: cordon, drain or hold, and give back
//	drain/v1alpha1             experimental  the API type NodeMaintenance
//	drain/fit                  experimental  estimates whether replacements of the pods that leave find a Node
//	drain/draintest/operators  experimental  a conformance suite: operators that act when a pod of theirs is evicted
//	rollout                    experimental  takes a revision over a fleet in stages, and stops by itself: what to do next, and why
//	rollout/v1alpha1           experimental  the rollouts API: Rollouts, Revisions, what each node is told and says, the ledger of a disruption domain
//	rollout/protocol           experimental  the rules by which nodes are disrupted, as functions and as a table
//	rollout/nodeagent          experimental  the node's half: commit, apply, verify, revert
//	rollout/controller         experimental  carries out what was decided: one disruption domain with all its rollouts
//	rollout/kube               experimental  what a rollout remembers, in the API server
//	machine                    experimental  declares machines, and has a provider create, update and delete them: what each needs next
//	machine/provider           experimental  the contract with whatever makes machines; decorators
//	machine/provider/exec      experimental  machines by a program in any language, with JSON in and JSON out
//	machine/provider/ssh       experimental  machines of a pool of hosts that are there already, by ssh
//	machine/provider/local     experimental  machines of processes on this host
//	machine/provider/providertest  experimental  a cloud for tests, with its state on disk, and faults on demand
//	machine/controller         experimental  carries out what was decided, over any store
//	machine/admission          experimental  the checks before an end as an admission function
//	machine/etcd               experimental  members of etcd: lists them, removes one before its machine is switched off
//	machine/v1alpha1           experimental  the machines API, in the shape that the cluster-autoscaler works with
//	machine/kube               experimental  machines and Nodes in API servers
//	machine/file               experimental  machines in a directory, for a first cluster
//
// A page for each root package, in docs/embedding, has what to bring and the smallest program.
//
// Beside most of them stands a test kit (checkpointtest, lkgtest, …): the conformance suite that the package's own fake
// and real implementations pass, for those who write their own.
//
// What the words promise, while the major version is 0: stable breaks only with a deprecation of one minor version
// before it; beta may break in a minor version, with a line in CHANGELOG.md; experimental may break in any version.
// On-disk formats and annotations are part of the promise.
//
// # How the parts meet
//
// Root packages do not import each other, except that configsync speaks the types of lkg, and that any package may use
// another's API types (v1alpha1). Where two meet, the consumer declares an interface of a few methods in terms of the
// standard library and Kubernetes API types, and the other satisfies it as it is. A config goes this way:
//
//	source -> fetch -> gate -> decode -> validate -> checkpoint -> lkg: on trial -> restart -> probes -> lkg: promoted or rejected
//
// In every package a pure function decides (what was seen, what is wanted, the time, in; actions and reasons out), and
// a thin loop acts. Dry run, status commands and production call the same function, so that a dry run cannot lie.
// Reconcilers have the shape Reconcile(ctx, key) (after, err); Run(ctx) owns its goroutines and returns when ctx ends.
// No package has mutable state of its own, runs anything at import, logs from a leaf, or ends the process.
//
// # Failure model
//
// A package is called more than planned when it withstands, in its tests, what of this concerns it.
//
//   - The process dies at any instruction, by any signal, and the machine at any moment. What was acknowledged is still
//     there; what was under way is done or not done, never half.
//   - The API server is away, slow, behind, or answers with errors, for any time. A node decides from its own disk. Every
//     call has a deadline.
//   - The disk is full, read-only, failing, or gives back other bytes than were written. Damage is found by digest, set
//     aside and reported, and the newest good record is used.
//   - The clock jumps, in either direction, also over a reboot. Trials are measured in healthy running time, and nobody
//     compares the clocks of two machines.
//   - A config decodes, passes every check, and still brings the process down.
//   - Objects are edited, deleted and recreated under the same name. Identity is the UID and the digest of bytes.
//
// Nothing here is built for an attacker who is root on the node or administers the cluster, for a disk that
// acknowledges a flush that it has not done, or for two owners who force the same directory on each other past its
// lock.
//
// Nothing that cannot be undone (a restart, a reboot, an eviction, a deletion) happens before the record of the intent
// is acknowledged. If intent cannot be recorded, nothing is done, and the report says so.
package belay
