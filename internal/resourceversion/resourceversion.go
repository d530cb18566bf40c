// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceversion

import (
	"cmp"
	"fmt"
	"strings"
)

// An InvalidError says that a text is no resource version of an object: a positive decimal number without leading zeros.
type InvalidError struct{ Version string }

// Error implements error.
func (e InvalidError) Error() string {
	return fmt.Sprintf("resource version %q is not a positive decimal number", e.Version)
}

// Compare returns -1 if a is older than b, 0 if they are the same and 1 if a is newer. Both must be of one resource. Versions
// may be longer than any integer type. The error is an [InvalidError].
func Compare(a, b string) (int, error) {
	for _, version := range []string{a, b} {
		if !isValid(version) {
			return 0, InvalidError{Version: version}
		}
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)), nil
}

func isValid(version string) bool {
	return version != "" && version[0] != '0' && strings.Trim(version, "0123456789") == ""
}
