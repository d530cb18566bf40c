// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig reads and writes the kubeconfig files of test servers: one cluster, one user, credentials inline.
// It stands in for clientcmd, which would bring pflag into the module graph of every user of the library.
package kubeconfig
