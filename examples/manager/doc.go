// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager is a controller-runtime manager that drains nodes, carries out rollouts and makes machines, each by
// packages of belay. It has one watch each of pods, Nodes and PodDisruptionBudgets, which are those of the manager's
// cache.
//
//	manager [-kubeconfig FILE] [-machine-provider PATH]
//
// The files drain.go, rollout.go and machine.go are what each of the three takes: copy those that you need. They do
// not depend on each other but for the Drainer. The definitions of Rollouts and Machines have to be installed: see
// rollout/kube.Install and machine/kube.Install.
//
// A Node with the annotation example.com/drain is drained; the value names the maintenance. Without the annotation the
// node is released.
package main
