// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crew runs one reference agent per node of the demo, each with a state directory, an address and a child
// process of its own, and reads what the agents and the children say of themselves without the API server.
package crew
