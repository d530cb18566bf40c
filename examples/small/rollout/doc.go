// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command rollout is the controller of a rollout, and the agent of each node where NODE_NAME is set. A revision here is the content of a file. An
// administrator has run kubectl belay install. It is made to be copied:
//
//	KUBECONFIG=~/.kube/config go run . &
//	KUBECONFIG=~/.kube/config NODE_NAME=node-1 go run . &
package main
