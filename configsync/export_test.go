// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

// What only the tests of package configsync_test use.

// GateError is what Gate returns.
type GateError = gateError

const MaxFields = maxFields

var HashedName = hashedName

var ValidateUID = validateUID

// ErrNotMade is the error of a zero Syncer.
var ErrNotMade = errNotMade
