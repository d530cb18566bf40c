// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package history

// What only the tests of package history_test use.

const MaxEntries = maxEntries

const MaxWhy = maxWhy
