// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restart has the configsync.Restarters: [Exit] for a process that ends itself and is started again by whatever started
// it, and [Supervisor] for an agent that runs the configured process as its child.
//
// # Promise
//
// Neither exits the calling process. A Supervisor runs one child at a time: it waits for a child, and kills what is left of the
// process group that the child led, before the next one starts, and no child outlives [Supervisor.Run]. When the agent is killed,
// the kernel kills the child (Linux).
//
// # No promise
//
// A child that moves itself into another process group or session and leaves a grandchild behind is not followed there. When the
// agent is killed, only the child itself is. What a child has left on disk is the child's affair.
package restart
