// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

// What only the tests of package fields_test use.

const MaxRules = maxRules
