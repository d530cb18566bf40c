// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

// What only the tests of package machine_test use.

const AdoptedAnnotation = adoptedAnnotation

const CapacityAnnotation = capacityAnnotation

const DefaultWait = defaultWait

const GivenUpAnnotation = givenUpAnnotation

const HashLabel = hashLabel

const ReplacementOfAnnotation = replacementOfAnnotation
