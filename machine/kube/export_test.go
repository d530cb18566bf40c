// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

// What only the tests of package kube_test use.

const MachineAnnotation = machineAnnotation

const MarkAnnotation = markAnnotation
