// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plane runs the command that gives the demo a control plane of its own.
//
// The command prints the path of a kubeconfig, alone on a line, and removes everything when it is told to stop. It
// may print the path before the API server runs. It reads orders from its standard input, one a line, and answers
// each with a line: "start" starts the API server, for the first time or again on the same data and address
// ("started", when it is ready), "stop" stops it ("stopped"), "kubelet NAME ADDRESS" readies the machine for a real
// kubelet ("kubelet" and its command line as a JSON list). An answer may also be "unsupported" and why.
package plane
