// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machine decides what a machine needs next: one that is declared as an object, and made, changed and ended by a provider.
//
//	package example
//
//	import (
//		"context"
//		"github.com/belayproject/belay/machine/controller"
//		"github.com/belayproject/belay/machine/kube"
//	)
//
//	func run(ctx context.Context, o controller.Options, machines kube.Machines, nodes kube.Nodes) error {
//		o.Machines, o.Nodes = machines, nodes
//		c, err := controller.New(o)
//		if err != nil {
//			return err
//		}
//		return kube.Run(ctx, kube.Loop{Controller: c, Machines: machines, Nodes: nodes})
//	}
//
// It holds decisions alone. [Decide] says of one machine, from all that was seen of it, what to store and which effect comes next; [Learn] says what
// that effect has brought. [DecideSet], [DecideDeployment] and [DecideHealth] do the same for sets of machines, their revisions and their health.
// Package github.com/belayproject/belay/machine/controller carries it out, with any store; the provider's side is
// github.com/belayproject/belay/machine/provider.
//
// # Life of a machine
//
//	Pending -> Creating -> Joining -> Starting -> Ready -> [Planned -> (Turn -> BackingUp) -> Draining -> Updating -> Verifying -> Ready]
//	        -> Gates -> Slot -> Hooks -> Draining -> Leaving -> Stopping -> RemovingNode -> Releasing -> Gone
//
// Each step has the time since when, and what it waits for.
//
// # Promise
//
//   - Intent before effect. The token of an instance, the digest of what it is to be, an update, and the end of an instance are stored, guarded by
//     the version of the machine, before a provider is asked for anything that can't be taken back.
//   - One instance. A token is never left before its instance is stopped and released. Whoever finds a token looks it up before anything is made.
//   - The finalizer is written before the first effect, and is the last thing to go.
//   - A Node is removed after the proof that its instance is stopped, by UID. None is left behind without a word: one that could not be removed, as the workload API was
//     away, is in [Status].Strays until it is, and keeps a machine that is deleted, unless somebody says not to wait for it.
//   - Machines of the control plane are changed one by one, and none that works while another one does not, as far as their status says ([Machine.WaitsFor]).
//   - Disks are kept unless [Deletion] says Destroy.
//   - The gates of an end are asked before its first step that can't be undone, and never after it.
//   - No failure is for ever: the provider is asked again after a while, whatever it has said.
//   - What is not waited for any more is written down, in [Release].Overrides at an end and in [Update].Overrides at a change in place, for as long as that goes on.
//
// # No promise
//
// A provider that breaks its contract can break these. An instance that was deleted behind the back is reported (InstanceLost) and not made again:
// that is for the owner of the machine to decide, or for whoever deletes it.
//
// # Concurrency and crashes
//
// All functions are pure and may be called concurrently. A caller may be killed at any point between a decision, its write, its effect and what was
// learnt of it: the next decision goes on from what was stored.
package machine
