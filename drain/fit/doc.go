// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fit estimates whether the pods that leave a node find a place on another one.
//
// [PlaceReplacements] takes the pods that leave, in the order of the plan, and looks for a Node for the replacement of
// each, as kube-scheduler with its default plugins would. A replacement that has found a place uses it up, so that ten
// pods do not all fit into the room for one. The messages have the words of the scheduler's own event FailedScheduling.
//
// It looks at taints and cordons, nodeSelector and required node affinity, resource requests (extended resources and
// the number of pods included) against what is allocatable, host ports, the node affinity, the zone and the allowed
// topologies of volumes, required inter-pod affinity and anti-affinity, and topology spread with DoNotSchedule.
//
// # Promise
//
//   - The same arguments give the same verdicts, and no argument is changed.
//   - What [Cluster] does not tell is never held against a pod: the verdict then says what was not checked.
//   - A Node in [Cluster].Draining stays in the cluster, cordoned and without the pods that leave, as it is between a
//     drain and the removal of its machine. A topology spread may thus count it as an empty domain.
//
// # No promise
//
// It is an estimate, and no reason to refuse a drain: a cluster autoscaler may add Nodes, another pod may take the
// room, the scheduler may place pods in another order. Preemption, limits on the number of volumes of a Node, volumes
// that only one pod or one Node may use, dynamic resource allocation, tolerations that compare numbers, resizes in
// place, and what a scheduler of another name does are not looked at. A pod that was made with a nodeName is taken for
// one that a scheduler has placed.
//
// # Concurrency
//
// Functions may be called from several goroutines, as long as nothing changes the objects that they are given.
//
// # Crash behaviour
//
// The package keeps nothing and writes nothing.
package fit
