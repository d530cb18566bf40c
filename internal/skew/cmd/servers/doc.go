// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command servers runs the suites that start an API server on each release of Kubernetes that internal/controlplane
// pins, and prints a table of packages and releases.
//
//	servers [-releases "1.34 1.37"] [-logs DIR] [PACKAGE ...]
//
// A PACKAGE is an import path or its end, such as drain/kube; all suites of the library and of the examples run if
// there is none. Servers that are missing are compiled first, which takes minutes each. Suites run one after the other:
// a control plane takes a processor.
//
// A suite that starts kubelets runs on the newest release alone, and has a dash elsewhere: its kubelets, of that
// release and of the one before, may not be newer than the API server.
//
// The exit code is 1 where a suite fails. -logs keeps the output of each.
package main
