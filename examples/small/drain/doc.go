// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command drain empties one node of the cluster that $KUBECONFIG names, and prints the pods that have left. It is the smallest program
// over drain/kube, made to be copied:
//
//	KUBECONFIG=~/.kube/config go run . node-1
package main
