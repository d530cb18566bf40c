// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command identity measures our members and views beside those who keep Leases elsewhere, in one run, on a real etcd and API server: the
// lease controller of k8s.io/component-helpers, which renews the Leases of kubelets and kube-apiservers, and client-go's leader
// election. Run it with `make bench-identity`; it takes 35 minutes, with -quick 4.
//
//	I1  20 members, a connection each: requests for a renewal, as sent and as the API server counts them, GETs, and renewals to those owed
//	I2  the same members: bytes and allocations for a renewal, also without managed fields
//	I3  1,000, 5,000 and 10,000 members at 10, 30 and 60 s: renewals a second, processors, times; component-helpers at 5,000 and 10 s
//	I4  10,000 members at 30 s watched by another process: memory and processor of a view beyond those of its informer
//	I5  members that stop without a word: time until Left; members that don't, while the API server stalls and restarts: false losses
//	I6  writes of an agent with a pod-bound token: time with the policy of package nodeauth, and without
//	I7  a process that is killed with kill -9 and started again: time from its start until it has its Lease
//
// A line a figure: "ours" and "peer" are medians, with the least and the most in brackets where there are several runs; "ratio" is ours to
// the peer's, or to what the remark says. The last word before the remarks is "ok" or "SHORT", and "-" for a figure without a bar. The exit
// code is 1 where a line is short, 2 where nothing could be measured.
//
// # What the lines mean
//
// I1.requests, I1.requests-served, I1.gets: a renewal is a new version of a Lease that a watch of another process saw. At both ends of
// the time that is measured all clients stand still, so that client, server and watch count the same requests. The API server's own Lease
// is switched off. I1.renewals is how many there were, to as many as the members owe in that time: a member that renews too often is not
// cheap.
//
// I2.bytes-*: bytes of TLS on the connections, both ways, protobuf throughout. Our Lease says more than the peers': host, fingerprint,
// epoch; its size is in the remark. ours-omit is with Spec.OmitManagedFields. I2.allocs-*: of the whole process, HTTP client included.
//
// I3.N@INTERVAL: the ratio is to the renewals that there should be. All members are in one process and share at least 10 connections; their
// renewals are spread evenly; another process has one view. Where a machine has nothing left to give (less than 5 % idle, or renewals that are
// late, refused, failed or lost), the remark says SATURATED: the figures are then those of the machine, with the load generator on it. "Others" are the
// cores that went to what is no part of this benchmark. The lines that end in a word have component-helpers as the peer.
//
// I4.heap, I4.cpu: the same process first with the informer alone, then with a view on it: the bytes that were added for a member, and
// the cores of the process beside those before. The first is short if a member was not Alive by then.
//
// I5.detection-*: from when the last renewal was sent; the ratio is to Liveness. I5.early counts losses before Liveness was over,
// I5.false-losses members that were called lost (Left, Quiet) though they renewed whenever the server let them.
//
// I6.*: ours is with the policy, peer the same write while the policy's binding is away, both the medians of the rounds' p50. These are seconds apart,
// and the machine is not the same then. Therefore beside each write a ConfigMap of about the same size is written, for which there is no policy:
// the ratio of a round is how many times that pace the write takes with the policy, by how many times it takes without, in the median of the pairs;
// the ratio of the line is the median of the rounds. In the remark is the same for an account that the policy is not for: what it costs others,
// such as a kubelet. The Node holds what a kubelet reports of one that is well used, all of which the policy compares.
//
// I7.held-*: the child has our usual intervals, the peers have theirs. component-helpers is as fast because it takes a Lease over without
// asking who else is alive.
//
// Times depend on the machine and its load. Those of I7 have a bar that is far from the limit on any machine that can run the rest.
package main
