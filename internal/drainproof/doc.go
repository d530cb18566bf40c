// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drainproof proves package drain on a real control plane: etcd, kube-apiserver, and, where budgets, workloads or node failures
// matter, kube-controller-manager and kube-scheduler. Only the kubelets are played. It holds nothing but tests:
//
//   - A drain that is killed at each of its writes and at random instants goes on, and evicts nobody whom it should not.
//   - Plan admits exactly the pods that the server does, in random clusters.
//   - The requirements that only a server can show are read from its audit log and its watches.
//
// Random tests print their seed; BELAY_DRAIN_SEED replays one.
package drainproof
