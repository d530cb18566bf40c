// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command rollout measures package rollout and its controller: R3 and R7 in memory, the others on real control planes, each with a controller in a
// process of its own and the agents of all nodes in this one. Run it with `make bench-rollout`; it takes about 45 minutes, with -quick 12.
//
//	R1  100 nodes of 20 pods that take 30 s to end, 50 nodes at a time: requests; and 20 nodes, 5 at a time, beside a loop around kubectl's
//	    library that does the same. R1.config: 50 nodes, 25 at a time, whose revisions are configs: requests
//	R2  10 minutes after a rollout, with two replicas of the controller and the agents of 20 nodes: requests
//	R3  Plan over 5,000 nodes in 20 groups: time and garbage, quiet, with one event, with ten
//	R4  500 nodes in 250 slots: time from the end of a node to the next grant
//	R5  the leader is killed while a rollout goes on: time to the next admission, the cap, nodes that are cordoned twice
//	R6  a rollout of 5,000 nodes is aborted 20 times: time to the acknowledgement
//	R7  detectors: how many rollouts of good and bad revisions they halt, and after how many failures, over 15,000 rollouts for each cell
//
// A line a figure; the last word before the remarks is "ok" or "SHORT", or "-" where there is no bar. The exit code is 1 where a line is short,
// 2 where nothing could be measured.
//
// # What is counted
//
// Requests are counted in the API server's audit log, by user agent. R1.calls is all that the controller and the agent ask for a node: reads, the
// ledger, the status of the rollout, orders, cordons, marks, and what the agent says. The bar is 10 for a node: 8, and 2 writes of the ledger, which
// a batch of nodes shares. Fleets of 1,000 to 5,000 nodes have 50 to 250 slots, and so has R1.calls: the bar is shown with 50 slots, and with no fewer. With few slots
// there is less to share, and a node costs more than with many: R1.few-calls says how much with 5 slots, and has no bar. The ratio to the peer is judged
// with those 5. Nodes are drained and do not boot, so that their agents need not say that they begin: with a boot it is one more.
//
// What a drain asks about pods is apart, as R1.drain and R1.few-drain: the eviction of each, and what it takes to know that they are gone. kubectl's library lists the
// pods of a node once, and gets each that is leaving once a second: 20 pods that take 30 s are 20 evictions, a LIST and 600 GETs, 621 in all. To
// get them every 5 s makes 20 + 1 + 120 = 141 of it. Ours follows pods with the one watch that the controller has anyway, and lists those of a
// node once, to be sure that none is left: 20 + 1 = 21. R1.total has R1.few-calls and R1.few-drain.
//
// Not counted are what a controller lists and watches when it starts, requests for the Lease, watches that the client library begins anew every
// few minutes, and events, of which the controller of the benchmark writes none. What it costs that a node joins, once in its life, is R1.joining:
// the rollout that is measured finds its nodes taken up.
//
// Agents run their half of the protocol as in production, with the defaults of nodeagent.Options but for the time of verification: they look six times
// meanwhile whatever that is, and so read as often as with the default of a minute. But they have nothing to update: what they apply is a name in memory.
// So R1.calls is what a rollout asks, whatever is rolled out, and what an updater asks for itself comes on top of it. Three more things are cheaper than
// in production: one watch of all shadows stands for that of each agent, agents know the UID of their Node without asking, and they keep no Lease. R4 to
// R6 have agents of the same kind.
//
// R1.config has all that is asked where revisions are configs. Its agents are wired as the reference agent is (examples/internal/simnodes), each with a watch of
// its own: they read the Revision and the ConfigMap as well, and report the config in the condition ConfigOK of their Node. R1.config-calls has apart, by
// verb and resource, what they ask about their shadow for the rollout, what they ask for the config, and reads of the Node, which are for its UID or for
// its condition. It has no bar: that of R1.calls is for the rollout. Nodes have no pods. Trials take 2 s, and are looked at each half a second. These
// agents keep no Lease either; F2 of bench fleet counts that.
//
// The peer of R1 marks each node, drains it with kubectl's library and the settings of the command, marks it again and uncordons it. It neither
// talks to the node nor verifies anything. Nearly all that it asks is whether pods are gone. A drain that fails is begun again, and the remark says
// how many did. The pods are of 20 Deployments with a budget each, so that evictions seldom meet at one.
//
// # What times mean
//
// R4 to R6 are times of this machine: API server, etcd, agents and controller share its processors, and the remark says how much of them was
// idle and who used the rest. A line that is short on a saturated machine says little of the controller. R4 and R6 have nodes without kubelet and
// pods: their drains end at once.
//
// In R4 the first 250 nodes begin at once, and end over three minutes, after a minute and a half: what is measured begins when the rush is over. In
// R6 each abort comes when a batch of nodes has just been admitted and the controller has its hands full. It is judged by the status that proves
// that no further node is begun, with the phase Aborting or Aborted; until nodes that had begun have ended is their time, printed without a bar.
//
// R5 has two elections, each on a fleet of its own. The first is by the elector of client-go, with a Lease of 2 s of which it renews and asks at
// eighths; with the usual 15 s, and asking every 2 s to 4.4 s, that alone would take longer than the bar. The lines R5.shipped- have what the reference
// controller ships: a Member of package identity, with a Lease of 15 s. What an election takes beyond the duration of the Lease is within the bar of
// both, and the remark has it apart.
//
// R7 counts halted rollouts and failed nodes over the same rollouts for both sides; the peer is what other orchestrators do, to stop after 5% of
// the nodes have failed. R3 bounds the time of a pass at 10 ms and its garbage at 1 MiB.
package main
