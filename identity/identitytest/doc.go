// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identitytest is the test kit of package identity: an API server for Leases in memory, clocks that lie, and suites.
//
// [Server] keeps Leases as the API server does: one write after the other, a resourceVersion that grows with each, conflicts on
// updates of an old version, UIDs, preconditions on deletions, and watches. It can be stopped, be slow, refuse requests, and answer a
// request that it has carried out with an error. client-go's fake enforces neither conflicts nor preconditions, and would hide
// what this package is about.
//
// [Clock] is a clock with an offset and a rate of its own, which can be suspended.
//
// [TestLeases] compares a LeaseClient with the rules of the API server; it passes on Server and on a real one. [TestIdentity] compares
// Member, View and Collector with their promise, and passes on both too.
package identitytest
