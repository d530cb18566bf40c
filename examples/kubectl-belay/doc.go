// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-belay is a kubectl plugin for people who run rollouts: put it on the PATH as kubectl-belay, and kubectl belay is there.
package main
