// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command fleet measures a fleet on real control planes. Run it with `make bench-fleet`, which builds the programs that are measured; with -quick
// it takes 7 minutes, with fewer nodes.
//
//	F1         1,000 agents in this process, each with a connection and a store of its own, are assigned a new config: the time until it is active, and requests
//	F1.shared  the same, where all agents write to the disk that etcd has
//	F2         examples/agent as its own process, beside the least that a client is: memory at rest, and requests
//	F3         examples/controller as its own process, with 5,000 nodes: memory and processor at rest
//
// What a rollout asks for each node is R1 of bench rollout, which `make bench-fleet` runs too. A line a figure; the last word before the remarks is "ok"
// or "SHORT", or "-" where there is no bar. The exit code is 1 where a line is short, 2 where nothing could be measured.
//
// # What is measured
//
// F1 has the parts that examples/agent takes for a NodeConfig: the source, the fetcher, the reports to the NodeConfig and to the condition of the Node,
// and a store; what it restarts is nothing. A node of a fleet has a disk of its own, and etcd has another. Where a thousand stores are on one disk, and
// etcd's on it too, an adoption's thirteen fsyncs wait for those of all others, and a file system looks among the files that all of them have just
// removed for a place for the next: so the stores of F1 are in memory (/dev/shm), where an fsync costs nothing, and F1.shared, which has no bar, tells
// what the other extreme is.
//
// All nodes are assigned the same ConfigMap, as fast as the API server takes it: F1.active is when it is active, by the status of the NodeConfig, on 99
// of 100 nodes, since the first was assigned it, F1.own since that node itself was. The peer is the bare limit in the same run: as many watchers, each
// with a connection of its own, that answer the same assignment with one write of as large a status, read nothing, keep nothing and check nothing. Both
// take turns. API server, etcd, agents and driver share the machine; the remark says who used how much of it. Where others use it too, times are theirs
// as much: F1.work is the processor time that a node took of all of these together until a second after the last, which depends less on that.
// Connections are not pinged. Trials last longer than the run, so that F1.requests has what an adoption takes until the config is active and what
// follows from it within a second, and not the reports of a trial.
//
// F2 rests with a child, a config that was promoted, and a part in rollouts by hooks, with its Lease. Memory is the most that the kernel shows meanwhile.
// Requests are counted in the API server's audit log; those for the Lease and watches that the client library begins anew are not among them. Every ten
// minutes an agent looks at its objects although nothing says that they have changed; that is in no window that is shorter.
//
// F3 rests after a rollout to what all nodes run already, with a shadow for each node. Nodes and pods have no kubelet, and are small.
package main
