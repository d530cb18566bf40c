// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binaries builds the servers that tests run, once for each machine.
//
// [Ensure] returns the paths of the programs asked for. What is missing is built by "go build" in the module that
// pins it (internal/controlplane for the Kubernetes servers) and kept in the user's cache directory, under a key
// of the module sums, the Go version and the platform: a second call takes milliseconds, and another pin never
// finds an old program. Any number of processes may call at the same time: one builds, the others wait for it.
// A build that is killed leaves nothing that a later call could mistake for a program.
//
// Where the environment variable KUBEBUILDER_ASSETS names a directory, its etcd and kube-apiserver are used as
// they are.
package binaries
