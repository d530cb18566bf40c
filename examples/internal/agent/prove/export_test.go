// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

// What only the tests of package prove_test use.

const MaxAnswers = maxAnswers

const MaxShown = maxShown
