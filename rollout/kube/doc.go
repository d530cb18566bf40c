// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kube keeps what a rollout remembers in the API server.
//
// A [LedgerStore] is the ledger of a disruption domain in a DisruptionLedger. [Shadows] are the records of the nodes, for controllers;
// an [AgentShadow] is the one of an agent's own node. [NewFleet] and [NewRecords] make the Nodes and shadows of a controller of package
// controller, [NewRollouts] its rollouts, each from a [Cache]. A [Health] says whether a node and the work on it are well, before and
// after.
//
// # Promise
//
//   - A ledger is written by compare-and-swap on its resourceVersion. Load reads it from the API server's storage; Seen, from a watch, may be older,
//     and then nothing can be stored on it. What cannot be read exactly as it was written is an error that names the object and the field. Labels,
//     annotations and other keys are left as they are.
//   - A shadow is written by compare-and-swap as well, each side its own part: the controllers the spec, the agent the status. Fields that this
//     version does not know are left as they are. What the server would drop is refused.
//   - A shadow belongs to the Node with its UID, and goes with it. Its finalizer is taken away only from a version that [github.com/belayproject/belay/rollout/protocol.Shadow.Removable]
//     allows, or when the API server has no Node of that UID.
//   - A watch whose connection failed, also that of an agent's own shadow, goes on from where it was; only an answer of the API server has it list again.
//
// # No promise
//
// Whoever may write a ledger may break every cap: give that right to the controller alone. A finalizer keeps it from being deleted by
// accident; somebody who removes that as well costs capacity, as the controller then looks for what the lost one had admitted. The
// same holds of a shadow: see [github.com/belayproject/belay/rollout/protocol.NewShadow].
//
// # Rights
//
// [AgentRules], [ControllerRules] and [HealthRules] return them as rules:
//
//	agent       get, list, watch of its own nodeshadows.belay.dev, patch of nodeshadows/status there; get of revisions.belay.dev
//	controller  get, list, watch, create, patch, delete of nodeshadows.belay.dev, and not nodeshadows/status; get, list, watch,
//	            create, update of disruptionledgers.belay.dev; list, watch of revisions.belay.dev; get, list, watch, patch of nodes;
//	            list, watch, patch of rollouts.belay.dev and patch of rollouts/status
//	health      list, watch of nodes, pods, deployments.apps, statefulsets.apps and daemonsets.apps
//
// A write of the spec does not touch the status, nor the other way round: a side that has no right on the other's part can't write it. Revisions are
// created by people or their pipelines.
//
// # Concurrency and crash behaviour
//
// All methods may be called at the same time. A call to the API server ends after 10 seconds. A Store after the Load of its version is one call,
// so are Order and Report. A Delete that was interrupted leaves a shadow that is marked as deleted and complete; the next one goes on.
package kube
