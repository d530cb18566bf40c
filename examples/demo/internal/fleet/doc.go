// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet makes the objects of the demo on the API server, pushes configs to them, reads what the nodes report, and removes
// everything again.
//
// It creates; it never takes over. Each object carries [RunLabel] with the run's own value, each is written and deleted only under
// the UID that its creation returned, and an object of the same name that is already there ends the demo. A Cluster may be read from
// several goroutines; its other methods must not be called at the same time.
package fleet
