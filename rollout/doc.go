// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout takes a revision over a fleet of nodes: in stages, within every cap, with a reason for every node that waits, and stops by
// itself when the revision is bad.
//
//	package example
//
//	import (
//		"context"
//		"github.com/belayproject/belay/rollout/controller"
//		"github.com/belayproject/belay/rollout/kube"
//		"k8s.io/client-go/rest"
//	)
//
//	func run(ctx context.Context, config *rest.Config, drainer controller.Drainer) error {
//		return kube.RunController(ctx, config, kube.ControllerOptions{
//			Domain: "default", Controller: controller.Options{Drainer: drainer},
//		})
//	}
//
// [Plan] decides. It is a pure function of what was seen, what is wanted, and the time; a dry run, the answer to "why does this node
// wait", the simulation and production call it, and who calls it again and again has a [Planner] do it. What it may do at all is settled by
// package protocol: a slot in the ledger of the disruption domain is the right to disrupt a node, and every cap is checked again there, on the
// ledger that is stored.
//
// # Promise
//
//   - No more nodes are disrupted at a time than the strictest of all caps allows, whatever number of controllers run, restart or look at old
//     data. Caps that are lowered, and fleets that shrink, block what comes next and take nothing back.
//   - A node that is touched has been allowed by its stage, its group, the order, a window in which its whole cycle fits, and the health of
//     the fleet and of itself. What is not known does not allow.
//   - A stage is passed when its nodes have come to an end, at least one of them well, and its soak, the gates of the fleet, its own and its approval allow it. A node that
//     cannot be touched is passed over in a sized stage, and holds up one that takes all nodes until somebody promotes the rollout.
//   - Serial nodes go one at a time over all rollouts of the domain, and never leave fewer than a majority of them available, unless the policy
//     says that this may be lost.
//   - A revision that fails is not tried on fresh nodes before it has succeeded in the stage. A detector that trips, or a critical node that fails,
//     closes the ledger before the next admission. [Bound] says before the start how many nodes can be broken by then.
//   - A node that joins during a rollout gets the last revision that was completed, and its turn at the end. A node that leaves is forgotten.
//   - The [Checks] of the policy look at it and the snapshot before anything is begun, and refuse or warn.
//   - Refusals, postponements and attempts that were undone are no failures; a node that was sick before its turn is not one either. Each
//     node counts once for a revision, whatever its retries.
//   - The same input gives the same decisions, in the same order.
//
// # No promise
//
// Nodes that are away for other reasons are counted as of the snapshot. Expected times are estimates from the cycles seen so far. Plan trusts
// the verdicts of gates and the reports of agents.
//
// # Percentages
//
// A percent is of the nodes that its cap or detector counts, rounded down for caps and up for failures, and is at least 1. It is evaluated
// anew with each snapshot.
//
// # Concurrency and crash behaviour
//
// Plan changes none of its arguments and keeps nothing. All it remembers is in the ledger, the shadows and [Progress], which whoever acts on
// the decisions stores; a decision that was not carried out is made again. The ledger is stored first, by compare-and-swap, then the
// progress: what is lost in between is found again in the shadows. What somebody has stopped stays stopped, whatever an old Progress says: the
// ledger is opened only by requests that are known by name.
package rollout
