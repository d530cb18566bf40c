// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifestproof proves what lies in examples/manifests. It holds nothing but tests:
//
//   - Every base is built by kustomize and taken by a real API server, which is told to refuse whatever it does not know.
//   - The roles are the rights that the packages name, no more and no less; the policies are what identity/nodeauth makes; and who may do what is
//     asked of that server: an agent with the token of its pod, an agent with a kubelet's certificate, the controller, and people.
//   - Two controllers and their agents with the arguments, accounts, roles and policies of the manifests use every right that they have, and are denied none: the audit log of
//     the server is held against the roles after they have lived through all that they are for. So it is with machines.
//   - Each request comes to the share of the server that is meant for it.
//   - Every metric, label and value in the alerts, on the dashboard and in docs/monitoring.md is exported, and every alert has its page in docs/runbooks. Over the series of
//     outages, Prometheus' own engine raises the alerts that are meant, when they are meant, over a lead that changes hands.
//   - The Deployment of the controller is updated to its end by a real scheduler and controller manager, where the system's priorities are scarce.
//
// It is a module of its own for the sake of kustomize and of Prometheus' engine, which no user of belay is to carry.
package manifestproof
