// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"fmt"
	"strings"
)

// Validate returns an [*InvalidError] that names the first field that is wrong, or nil. A missing UID is no error here: whether
// a digest, an immutable object or the policy stands in for it is known once the object was fetched; see [CheckObject].
func (s Spec) Validate() error {
	switch {
	case s.Namespace == "":
		return &InvalidError{Field: "namespace", Problem: "must not be empty"}
	case s.Name == "":
		return &InvalidError{Field: "name", Problem: "must not be empty"}
	case !isObjectName(s.Namespace, 63):
		return &InvalidError{Field: "namespace", Problem: nameProblem(s.Namespace, 63)}
	case !isObjectName(s.Name, 253):
		return &InvalidError{Field: "name", Problem: nameProblem(s.Name, 253)}
	case s.UID != "" && ValidateUID(s.UID) != nil:
		return &InvalidError{Field: "uid", Problem: ValidateUID(s.UID).Error()}
	case s.Key != "" && !isKey(s.Key):
		return &InvalidError{Field: "key", Problem: fmt.Sprintf("%q must be 1 to 253 of [-._a-zA-Z0-9], and neither %q nor begin with %q", clipped(s.Key), ".", "..")}
	case s.Digest != "" && !isDigest(s.Digest):
		return &InvalidError{Field: "digest", Problem: fmt.Sprintf("%q must be %q and 64 lower-case hex digits", clipped(s.Digest), "sha256:")}
	case s.Policy != Pin && s.Policy != Follow:
		return &InvalidError{Field: "policy", Problem: fmt.Sprintf("%q must be empty or %q", clipped(string(s.Policy)), Follow)}
	}
	return nil
}

func nameProblem(name string, most int) string {
	return fmt.Sprintf("%q must be at most %d of [-.a-z0-9], beginning and ending with a letter or digit", clipped(name), most)
}

// ValidateUID says whether uid can name a checkpoint: one path element of at most 100 of [a-z0-9.-], beginning with a letter or
// digit, without two dots in a row. The UIDs of an API server are of that form.
func ValidateUID(uid string) error {
	if len(uid) > 100 || !isObjectName(uid, 100) || strings.Contains(uid, "..") {
		return fmt.Errorf("UID %q must be 1 to 100 of [-.a-z0-9], beginning and ending with a letter or digit", clipped(uid))
	}
	return nil
}

// isObjectName is the part of the rules for names that keeps a name to one harmless path element.
func isObjectName(s string, most int) bool {
	if s == "" || len(s) > most || strings.Contains(s, "..") {
		return false
	}
	for i := range len(s) {
		c := s[i]
		inner := i > 0 && i < len(s)-1
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || inner && (c == '-' || c == '.')) {
			return false
		}
	}
	return true
}

func isKey(s string) bool {
	if s == "" || len(s) > 253 || s == "." || strings.HasPrefix(s, "..") {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_') {
			return false
		}
	}
	return true
}

func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}
