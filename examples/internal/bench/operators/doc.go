// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command operators prints what belay and kubectl's library do with each operator of the conformance suite:
//
//	go run ./operators
//
// Both sides have their defaults: belay the zero policy, kubectl's library the settings of the command "kubectl drain
// --force --ignore-daemonsets --delete-emptydir-data". Each operator runs alone, on one control plane of its own.
package main
