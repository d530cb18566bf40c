// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo gives a small fleet good and bad kubelet configs, and shows how each node copes by itself.
//
// It runs against a real API server: one that it starts (--control-plane) or one of the user's (--kubeconfig). Every node has a
// real agent process, and every agent supervises a real child process that loads the rendered config and can be made to exit by
// it. What is shown is read from the API server, the agents and the children. The exit status is 0 only if everything that was
// expected was seen; processes, files and objects are removed in any case.
//
// The command demo fleet rolls configs out over many nodes of a control plane with kwok, with the reference controller as a process and all agents in
// this one, and sees a fatal config stop by itself.
package main
