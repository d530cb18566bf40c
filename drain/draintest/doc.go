// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package draintest is the test kit of package drain: a cluster in memory, faults for its requests, and suites.
//
// [Cluster] is everything that a Drainer needs of Kubernetes. Its arithmetic of evictions and PodDisruptionBudgets equals the
// server's, to the wording of the answers, and it has what makes pods come and go: a disruption controller, owners that replace their
// pods, a scheduler, kubelets that take their time, an informer's lag. Time is the clock's alone, so that in a bubble of
// testing/synctest hours take milliseconds.
//
// [Script.Faults] spoils chosen requests: every answer that the server has, time-outs before and after the write, a lost watch, the
// death of the process. [Script.Log] is what was asked, when, and what was answered.
//
// [TestServer] compares a cluster with the rules of the API server, [TestDrainer] a Drainer with its promise, and [TestDrainerFaults] does that
// with every fault on every kind of request. All run on the cluster in memory and on a real control plane, so that neither the fake nor
// the Drainer can drift from the server. On a real one, [TestDrainerFaultsAtOnce] leaves out what waits for minutes, and deaths.
//
// # What it leaves out
//
// Objects have the fields that a drain reads. There is no RBAC and no validation of objects; what a request can do wrong is a fault.
// Requests are carried out one after the other, so that two never meet in a write: contention is a fault too. A pod under two
// budgets wakes both in the disruption controller, where the real one picks either.
package draintest
