// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admin lets the sub-commands of the agent talk to a running one, over a Unix socket in its state directory.
//
// # Promise
//
//   - Only the owner of the state directory can connect: the socket's mode is 0600 from its first moment on.
//   - A socket left by a killed agent is no obstacle to the next one, and is told from a live one: [Dial] then says
//     [ErrNotRunning].
//   - The length of the state directory's name doesn't matter.
//   - Each call has a deadline, each message a size limit.
//
// # No promise
//
// The protocol is between an agent and sub-commands of the same version: it is no interface for others.
//
// # Concurrency
//
// A server serves several clients. Closing it waits for calls that are under way.
package admin
