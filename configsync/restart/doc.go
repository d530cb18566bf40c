// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restart has the configsync.Restarters: [Exit] for a process that ends itself and is started again by whatever
// started it, and [Supervisor] for an agent that runs the configured process as its child.
//
// # Promise
//
// Neither exits the calling process. A Supervisor runs one child at a time: it waits for a child, and kills what is
// left of the process group that the child led, before the next one starts, and no child outlives [Supervisor.Run].
// When the agent is killed, the kernel kills the child (Linux).
//
// # Under systemd
//
// What ends by exiting, or has a unit of its own, is told how its last run ended by the commands of that unit: a [Unit]
// keeps what systemd says in ExecStopPost, once, for the next start. A [Guard] in ExecStartPre counts the start and
// chooses the config before the main process begins, so that a config is left even where that dies at once. Package
// restart/systemd restarts units over D-Bus.
//
// # No promise
//
// A child that moves itself into another process group or session and leaves a grandchild behind is not followed there.
// When the agent is killed, only the child itself is. What a child has left on disk is the child's affair.
package restart
