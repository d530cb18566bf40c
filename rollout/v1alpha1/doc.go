// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API in which rollouts are kept: who may disrupt which node, what each node is told to run, and what it runs.
//
// A [NodeShadow] is the record of one node, and has its name: the spec is written by the controllers, the status by the node's agent. A
// [DisruptionLedger] is the one place where the nodes of a disruption domain get permission to be disrupted; the controllers alone write it. A
// [Revision] is something that nodes are brought to, and never changes. A [Rollout] says which nodes are to get which revision, and how; its
// status says how far that is, and why. All are cluster-scoped, as Nodes are.
//
// NodeShadows and DisruptionLedgers mirror what package protocol speaks of, with validation and field docs of their own: [ShadowOf], [LedgerOf]
// and the functions beside them convert without loss. A Rollout is what package rollout decides on. Who looks after one takes the answer of
// [HeedRollback], asks [PolicyOf] and [ProgressOf] what is wanted and what is remembered, has [rollout.Plan] decide, stores the ledger, and then
// what [StatusOf] makes of the decisions; what cannot be decided on gets an [InvalidStatus].
//
// # Promise
//
// The API server itself enforces, on every write and by whomever:
//
//   - The numbers of a NodeShadow's spec, and the attempt of its status, never decrease, nor are they left out; its node stays the same.
//   - A new shadow grants nothing. A grant is newer than what was revoked and answered. A revision changes only together with the grant.
//   - An agent commits only what is granted and not revoked on this version of the shadow, begins only what was told to proceed, and
//     passes through the phases in their order; it takes back nothing that it has said.
//   - The epoch of a DisruptionLedger never decreases. A slot's attempt is one that the epoch has reached; no two slots have the same node, UID
//     or attempt.
//   - The spec of a Revision never changes.
//   - The domain of a Rollout never changes, what was asked for in one request stays the same, and what the rollout remembers is not
//     removed. Caps, windows, stages, detectors and verbs are such as make sense by themselves; the message of a refusal says what would.
//
// What a Rollout remembers comes back from its status as it was, to the nanosecond, together with fields of a newer version; or it is an error that
// names the field, and never a rollout that has not begun. The same decisions make the same status: who compares has nothing to write.
//
// Fields are only added, never renamed or given another meaning.
//
// # No promise
//
// The server sees one object at a time. That caps hold is decided by package protocol on the ledger that is stored, and rests on
// compare-and-swap: a write without a resourceVersion is checked as above, and no more. What may become of a slot, as that its mark only gets worse, our own
// controllers check before they write ([protocol.Ledger.Follows]); a hand is not kept from it. The server can't compute a digest: who reads a
// Revision calls [RevisionSpec.Check]. A Revision that is deleted can be created anew with another content and so another digest; whoever
// names a revision names both, as a Rollout has to.
//
// Of a Rollout's status only what it remembers is without limit. It grows with the nodes that were selected, by about 50 bytes each, and by
// another 60 for each that is in flight, has failed or was put off: at 5,000 nodes up to 300 KiB with 500 of them, and 550 with all. What it says
// of nodes is cut at [MaxNodeReasons]. Times in it are those of the controller's clock.
//
// # The manifests
//
// [CRDs] returns the CustomResourceDefinitions for this version of the package, as YAML. They need Kubernetes 1.33 or later.
//
// # Concurrency and crash behaviour
//
// Types are plain data: copy them with DeepCopy before sharing. Nothing here is persisted.
//
// +kubebuilder:object:generate=true
// +groupName=belay.dev
package v1alpha1
