// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operators is a conformance suite for whatever drains nodes: small fakes of the operators that act when a pod
// of theirs is asked to leave.
//
// [List] returns the fakes, each with one scenario. [Operator.Run] creates its pods and budgets on an API server, has a
// [Drain] empty a node, and returns a [Row]. [WriteTable] prints the rows.
//
// The fakes follow the public behaviour of the operators; [Operator].Source is where that is written. They copy codes,
// messages, annotations and budgets, and leave out everything else: there are no custom resources.
//
// # Cluster
//
// A run needs an API server that reaches 127.0.0.1 of this process, and the disruption controller. It plays the other
// controllers, the scheduler and the kubelets for its own nodes. Run it on a cluster without these: a real ReplicaSet
// controller would create pods of its own.
//
// # Units, errors and crashes
//
// Times are measured on the wall clock. Errors of the API server are returned as they are. A process that dies during a
// run leaves its namespace, nodes and admission configurations behind; all have names that begin with "operators-".
package operators
