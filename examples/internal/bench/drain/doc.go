// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command drain measures our drain beside kubectl's library (k8s.io/kubectl/pkg/drain), in one run and turn by turn, on a real API
// server with etcd, scheduler, disruption controller and the controllers of the workloads; kubelets are played. Run it with
// `make bench-drain`; it takes about two hours, with -quick 25 minutes.
//
//	S1  one node of 110 pods, no budget: requests
//	S2  ten nodes of 50 pods under one budget of 5: the budget, refusals, and time beside what the budget allows at best
//	S3  ten nodes of 50 pods under one budget that is wide open: drains that fail, and time
//	S4  20 pods blocked, then let go one by one: requests meanwhile, and time to wake up
//	S5  one node of 110 pods through a client that is throttled: time
//	S6  the process is killed every second: does it finish?
//	S7  a pod of a StatefulSet comes back elsewhere under its name while it is blocked: is it evicted there?
//	S8  1,000 nodes of 30 pods: memory for a pod, time to plan a node, CPU of 100 blocked drains
//	S9  six nodes in one command, one at a time, each with room for the pods of another one: evictions of a pod, and time
//	S10 1,000 nodes with a pod each, under a budget each that never allows any: evictions of a pod in 2 minutes, watches
//	S11 one node of 20 pods that take a second, no budget: time with the default policy
//	S12 500 nodes of 12 pods under 50 budgets, 50 nodes at once, beside 50 kubectl commands: refusals, and time
//
// A line a figure: "ours" and "peer" are medians, with the least and the most in brackets; the last word before the remarks is "ok" or
// "SHORT". The exit code is 1 where a line is short, 2 where nothing could be measured.
//
// Requests are counted by the measured clients and by the API server's audit log, and a run in which they differ is an error. What
// our cache costs at the start (a list and a watch for each kind of object, once in the life of a process) is counted apart and
// printed. kubectl's library runs with the delay of 5 s between attempts that the command has; with its own zero value it runs in
// the row of S4 that says so, and nowhere else. Our wall times are with a settle time of 0, since kubectl has none,
// but for S1, S9, S10 and S11, which have the default policy. The limits are the Scheduler's default ones, but for S12,
// which allows 200 evictions a second. A line of time is judged by the peer's also where the peer has failed to drain nodes.
//
// Times depend on the machine and its load: bars are ratios and counts, but for those of S4 and S8, which are far from the limit on any
// machine that can run the rest.
package main
