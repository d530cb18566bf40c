// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeprocess is what the agents of the demo supervise: a real process that stands in for the kubelet of one
// node, or runs a real kubelet where the machine can.
//
// The stand-in loads a KubeletConfiguration strictly, validates the thresholds of image removal, and serves healthz
// where the config says. It has no switch that makes it crash. A port that another program has stops it, as the port of
// its API stops a kubelet: such a config decodes and is valid, and doesn't work. It runs no pods and talks to no API
// server. [CheckConfig] says, as many daemons can, whether it would start with a config, and starts nothing.
//
// Either way each run writes into a journal what it was started with and what became of it. It ends with its context,
// and when its parent process goes away.
package nodeprocess
