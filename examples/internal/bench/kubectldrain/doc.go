// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubectldrain is the peer of what drains nodes: kubectl's library with the settings of the command.
package kubectldrain
