// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command binaries builds the servers that the tests and the demo run, so that no test waits for a compiler. It
// builds those named as arguments, or all, and prints the path of each.
package main
