// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command fleet measures a fleet on real control planes. Run it with `make bench-fleet`, which builds the programs that are measured; with -quick
// it takes 7 minutes, with fewer nodes.
//
//	F1         1,000 agents in this process, each with a connection and a store of its own, are assigned a new config: the time until it is active, and requests
//	F1.shared  the same, where all agents write to the disk that etcd has
//	F2         examples/agent as its own process, beside the least that a client is: memory at rest, and requests, for 12 minutes
//	F3         examples/controller as its own process, with 5,000 nodes: memory and processor at rest
//
// What a rollout asks for each node is R1 and R1.config of bench rollout, which `make bench-fleet` runs too. A line a figure; the last word before the remarks is "ok"
// or "SHORT", or "-" where there is no bar. The exit code is 1 where a line is short, 2 where nothing could be measured.
//
// # F1
//
// F1 has the parts that examples/agent takes for a NodeConfig: the source, the fetcher, the reports to the NodeConfig and to the condition of the Node,
// and a store; what it restarts is nothing. A node of a fleet has a disk of its own, and etcd has another. Where a thousand stores are on one disk, and
// etcd's on it too, an adoption's thirteen fsyncs wait for those of all others, and a file system looks among the files that all of them have just
// removed for a place for the next: so the stores of F1 are in memory (/dev/shm), where an fsync costs nothing, and F1.shared, which has no bar, tells
// what the other extreme is; its times are by the clock, as what it waits for is a disk.
//
// All nodes are assigned the same ConfigMap, as fast as the API server takes it. The peer is the bare limit in the same run: as many watchers, each with a
// connection of its own, that answer the same assignment with one write, read nothing, keep nothing and check nothing. There are these lines of times:
//
//	F1.active  since the first node was assigned the config, until it is active on 99 of 100 nodes, by the status of the NodeConfig, at one pace. This has the bar
//	F1.clock   the same as it was by the clock
//	F1.own     as F1.active since that node itself was assigned it
//	F1.plain   as F1.active, beside a cheaper peer
//	F1.pace    what the fixed piece of work took, beside the bursts of each side
//
// A virtual machine is not as fast at one time as at another: on one of two processors with nothing else on it, a fixed piece of work took from 0.14 to 0.30
// seconds of processor time within five seconds, and a burst of the peer's from 8.5 to 12.0 seconds within five minutes. The medians of seven bursts of each then
// had ratios from 1.35 to 1.61 for the same programs. So a process of its own does a small fixed piece of work up to fifty times a second beside each burst, of
// either side, and times are given as they would have been at one pace of it, that of the median burst. F1.clock has them without that, and F1.pace what the piece
// took beside the bursts of each side: a side that slowed the piece more than the other does would look better than it is, by as much as that ratio is off 1.
//
// The bar is on F1.active, because it is about the fleet: whoever assigns a config to a thousand nodes wants to know when it is active on all of them,
// and that time begins when they begin. Of two ways to read it this is the milder one: what it takes to assign a thousand configs is in it for both sides,
// which brings the ratio nearer to 1. The remark says how much that is, and F1.own, which leaves it out, is printed beside it. F1.own has no bar: nodes are
// assigned faster than they can be served, so that a node's own time is mostly its place in the queue before the API server, and how long that queue is
// depends on how fast the assigning went, which is no property of an agent.
//
// The peer of F1.active and F1.own writes what an agent writes, a forced apply of a whole status, so that the ratio is about what an agent does besides: two
// more requests, a store and its checks. That of F1.plain writes by a merge patch the fields that an assignment changes. That asks less of the API server and
// of the watcher, and is not open to an agent that is to own, and to clear, the rest of its status by the same write.
//
// All take turns, and whoever was first in one round is last in the next. The first round, in which everything is new to caches, does not count. Of the others
// there are nine. F1.shared has three, as nothing is judged by it.
//
// API server, etcd, agents and driver share the machine; the remark says who used how much of it. Where others use it too, times are theirs
// as much: F1.work is the processor time that a node took of all of these together until a second after the last, also at the pace of the burst.
// Connections are not pinged. Trials last longer than the run, so that F1.requests has what an adoption takes until the config is active and what
// follows from it within a second, and not the reports of a trial.
//
// # F2
//
// F2 rests with a child, a config that was promoted, and a part in rollouts by hooks, with its Lease and the guard: its account is that of a pod, and a policy
// of identity/nodeauth, as examples/manifests has it, holds it to its own node. Memory is the most that the kernel shows meanwhile. The window is twelve
// minutes, more than the ten after which an agent looks again although nothing has changed (configsync.Options.Resync), so that what it asks then is counted;
// that of -quick is too short for it. By the API server's audit log, each request of the agent is in one of three lines:
//
//	F2.renewals  of its Lease, at most one each 10 s
//	F2.watches   of its NodeConfig and its NodeShadow, one each, that are begun anew: the client library ends one after 5 minutes at the soonest
//	F2.calls     everything else, reads as well as writes
//
// Once an hour the agent asks whether the guard still holds, by a dry run of a Lease that is refused. Where that falls into the window it is a call like any
// other; but it asks at its start, and so an hour passes first: 0.02 calls a minute are to be added to F2.calls.
//
// The agent rests while F3 is measured, which is about another process on another control plane. Nothing that F2 has a bar for is a time.
//
// # F3
//
// F3 rests after a rollout to what all nodes run already, with a shadow for each node. Nodes and pods have no kubelet, and are small: four pods a node, and
// nobody writes anything. The bars are on that. The lines F3.beating- have none. They are of the same controller afterwards, with what kubelets do: a Node
// has 50 images and is written each five minutes, which with 5,000 nodes is 17 times a second, and there are ten pods a node. The fleet page is off, as it
// is by default.
package main
