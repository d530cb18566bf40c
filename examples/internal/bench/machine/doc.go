// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command machine measures what a thousand machines cost: a set of them goes up and down on a real API server, made by the fake cloud over HTTP, with Nodes
// that a kubelet each would register. Run it with `make bench-machine`; it takes about 15 minutes, with -quick 3.
//
//	M1.writes   requests of the controllers that change something, for a machine's whole life: made, joined, deleted, Node included
//	M2.list     calls of the provider other than List, in steady state, and Lists for each period
//	M2.writes   writes of the controllers in steady state
//	M3.create   time until all machines run, beside the time that the cloud takes to start one
//
// Requests are counted where the controllers send them, by method; the Nodes are registered through another client, which is not counted. A line a
// figure; the last word before the remarks is "ok" or "SHORT". The exit code is 1 where a line is short, 2 where nothing could be measured.
package main
