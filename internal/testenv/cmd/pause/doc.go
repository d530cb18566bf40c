// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pause does nothing until it is told to end. As the first process of a pod's sandbox it also collects
// the processes that others there leave behind; as an ordinary container it is the smallest thing that runs.
package main
