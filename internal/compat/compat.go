// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import "errors"

// AsType is errors.AsType of Go 1.26: the first error in the tree of err that is an E.
func AsType[E any](err error) (E, bool) {
	var found E
	ok := errors.As(err, &found)
	return found, ok
}
