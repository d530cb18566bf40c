// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeauth pins an agent to its own node, without a server of its own: the API server checks each write by a
// ValidatingAdmissionPolicy against the node that the caller's token is bound to.
//
// All agents of a DaemonSet share one service account and thereby one role. RBAC alone lets each of them write the objects of every node.
// [Objects] returns the policy that narrows this, its binding, the role, and a FlowSchema that keeps heartbeats going on a busy server.
// [Verifier] checks the same facts in Go, for those who serve a web API to agents. [Probe] is run by the agent and
// says whether the policy is there and aimed at it. [AssociatedNode] makes reads of pods narrow too, where the cluster supports it.
//
// # Promise
//
//   - A pod-bound token of a pod on one node writes that node's objects alone, by whatever verb: create, update, patch, apply, a
//     subresource, delete, deletecollection, generateName. What [Options] don't name of a guarded kind it does not write at all.
//   - A token that is not bound to a pod with a node (unbound, from a Secret, bound to a Node alone) writes nothing that is guarded.
//   - An object that must belong to a Node belongs to the Node with the UID in the token: after a Node was deleted and
//     made again under its name, a pod of the old one cannot write.
//   - Of its Node's status an agent writes the condition types that were named, and no other field, known or yet to come; of the Node
//     itself nothing, and without [Options].NodeConditions not even that.
//   - Whatever cannot be evaluated is denied. A denial is 403 Forbidden, so that apierrors.IsForbidden finds it, and says what
//     would be right.
//   - A kind that has namespaces and was named without one is not written at all.
//   - Namespaces in which agents have nothing do not depend on what the policy demands: a match condition lets them go, or a selector.
//
// # No promise
//
// Admission does not see reads: what the role lets an agent get or list it can get for all nodes; see [AssociatedNode]. Other kinds, and the
// guarded kinds in other namespaces, are a matter of RBAC. Whoever may create or exec into pods of the agent's service account, mint
// its tokens, impersonate it or edit the policy is not stopped. On an object that it may write an agent can also forget who owns which
// field: the server lets every writer reset metadata.managedFields. A policy takes about a second to bite after it was created: create
// it before the role. Tokens that were checked are cached by the API server for 10 s. A probe asks one API server of several, about one
// operation on one kind.
//
// The operation CONNECT is not guarded: whoever gives agents a right such as that to nodes/proxy or pods/exec, which the generated roles don't hold,
// gives it for all nodes.
//
// The Lease of an agent that must be owned by its Node, and is left over from a Node that was deleted and made again, is the new agent's
// only after the garbage collector has removed it. One without an owner, as an agent makes it whose identity.Spec.Owner is not set, is
// denied for ever, also to its own agent: set the owner before the policy is installed, and delete what was made before.
//
// # Concurrency
//
// All functions and methods may be called from several goroutines. A [Probe] and a [Verifier] keep nothing between calls, so that a crash
// loses nothing, and any replica of a server may verify.
//
// # Cost
//
// On one machine with the API server, a write that the policy checks took 7 to 13 % longer than without the policy, in the median, and one of
// the status of a Node that holds what a kubelet reports, with 50 images and 20 volumes, 14 to 17 %, of which 7 are the server's for any policy that is
// there. The server does most of its work on a write for what a policy matches; therefore the policy matches a write only if it has a fault, and its validations say which. Its metrics count denials alone.
// Writes of the guarded kinds by others, such as the status of a Node by its kubelet, are matched by user name and let go. So are Leases in
// other namespaces, unless every kind in [Options] has a namespace: then they are not matched at all.
//
// # Versions
//
// ValidatingAdmissionPolicy is stable since Kubernetes 1.30. The node claims of pod-bound tokens (the feature gate
// ServiceAccountTokenPodNodeInfo) are on by default since 1.30 and stable since 1.32. Associated-node reads (KEP-5284) are beta and on in
// 1.36. The tests run on one version, that of internal/controlplane.
package nodeauth
