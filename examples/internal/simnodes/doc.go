// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simnodes has the agents of many nodes in one process: each with a store on disk, a config syncer and the node's part in rollouts, as
// the reference agent wires them, and a stand-in for the kubelet that is no process.
//
// The stand-in starts with a config, is restarted for another one, and ends at once where the config can't work on its node, as a kubelet does.
package simnodes
