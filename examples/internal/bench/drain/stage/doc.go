// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stage is where the drain benchmark plays: a real etcd, API server, scheduler and controller manager, a kubelet played by
// goroutines, workloads on nodes, clients whose requests are counted on both sides of the wire, and an observer of its own.
//
// What is measured never shares a client with what plays the cluster. The measured clients have a user each, so that the API
// server's audit log says what it received from whom; they are bound to cluster-admin and not of system:masters, whom the server's
// fairness lets pass.
package stage
