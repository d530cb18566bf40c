// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeprocess stands in for the kubelet in the demo: a real process that loads a KubeletConfiguration strictly,
// serves healthz where the config says, and exits when the config asks for something that the machine doesn't have.
//
// It has no switch that makes it crash. A cgroupRoot that doesn't exist, or a healthz port that is taken, stops it, as
// each stops a kubelet: such a config decodes and is valid, and only the node can tell that it doesn't work.
//
// It runs no pods and talks to no API server. It ends with its context, and when its parent process goes away.
package nodeprocess
