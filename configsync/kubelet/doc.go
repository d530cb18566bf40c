// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet holds what a node agent has to know of kubelets: how their config is read, where it is written,
// which state on disk it binds, how a node shows that it is well, and whether the installed kubelet accepts a config.
//
// Everything but the config's own syntax is data or a small type, so that an agent for a patched kubelet can use one
// part and leave another.
//
// # No promise
//
// The package carries no copy of the kubelet's validation. The installed kubelet judges its own config: other
// versions have other rules.
package kubelet
