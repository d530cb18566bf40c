// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drift

// What only the tests of package drift_test use.

const NotRegular = notRegular
