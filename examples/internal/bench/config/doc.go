// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command config measures what a config costs on its way to a node, on a real API server and a real disk, with a child process: how long an
// adoption takes, from the assignment to the child that runs on it; how long a rollback takes, from the crash to the child that runs on
// the last known good config; what a settled node asks of the API server; and one decision. The peer of the latencies is the physical
// limit in the same run: a program that watches, gets, writes as many files durably, reports and starts the same child, and decides nothing.
package main
