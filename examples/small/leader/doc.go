// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command leader works while it holds a Lease: of many replicas one works, and the others wait. It is made to be copied:
//
//	KUBECONFIG=~/.kube/config go run .
package main
