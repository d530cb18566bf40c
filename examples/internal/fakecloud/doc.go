// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command fakecloud serves the cloud of package providertest on loopback, as a process of its own: for tests that kill a controller, or the cloud.
//
//	fakecloud --state DIR [--listen 127.0.0.1:0] [--no-sync]
//
// The first line on standard output is its URL. What was asked of it is in DIR before it is answered: after any end, also by SIGKILL, another
// fakecloud goes on from there. SIGTERM and SIGINT end it when the calls that run are answered, for 5 seconds at most.
//
// POST /faults lets something go wrong, GET /inventory counts what is there; package providertest has a client for both. There is no authentication:
// it refuses an address that is not loopback.
//
// This file and its neighbours only join public packages: they are meant to be copied.
package main
