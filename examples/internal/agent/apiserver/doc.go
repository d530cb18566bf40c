// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver is what the agent does at an API server beside taking its config: [Look] says how its setup stands
// there, and an [EventSender] makes events about its node.
//
// Both take a client of configsync/kube.NewClient. Each call has a deadline. Errors are those of
// configsync/kube.Classified.
package apiserver
