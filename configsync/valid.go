// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"fmt"
	"strings"
)

// problemAllNil is the text that people know and search for.
const problemAllNil = "exactly one subfield must be non-nil, but all were nil"

// Validate returns an [*InvalidError] that names the first field that is wrong, or nil. A Spec that names nothing at all is a source
// without a subfield. A missing UID is no error here: whether a digest, an immutable object or the policy stands in for it is known
// once the object was fetched; see [CheckObject].
func (s Spec) Validate() error {
	if s.Namespace == "" && s.Name == "" && s.UID == "" && s.Key == "" && s.Digest == "" {
		return &InvalidError{Problem: problemAllNil}
	}
	if err := s.validateName(); err != nil {
		return err
	}
	switch {
	case s.UID != "" && validateUID(s.UID) != nil:
		return &InvalidError{Field: "uid", Problem: validateUID(s.UID).Error()}
	case s.Key != "" && !isKey(s.Key):
		return &InvalidError{Field: "key", Problem: keyNameProblem(s.Key)}
	case s.Digest != "" && !isDigest(s.Digest):
		return &InvalidError{Field: "digest", Problem: fmt.Sprintf("%q must be %q and 64 lower-case hex digits", clipped(s.Digest), "sha256:")}
	case s.Policy != Pin && s.Policy != Follow:
		return &InvalidError{Field: "policy", Problem: fmt.Sprintf("%q must be empty or %q", clipped(string(s.Policy)), Follow)}
	}
	return nil
}

// validateName checks what finds the object.
func (s Spec) validateName() error {
	switch {
	case s.Namespace == "":
		return &InvalidError{Field: "namespace", Problem: "must not be empty"}
	case s.Name == "":
		return &InvalidError{Field: "name", Problem: "must not be empty"}
	case !isNamespace(s.Namespace):
		return &InvalidError{Field: "namespace", Problem: namespaceProblem(s.Namespace)}
	case !isObjectName(s.Name):
		return &InvalidError{Field: "name", Problem: nameProblem(s.Name)}
	}
	return nil
}

// validateUID says whether uid can name a checkpoint: one path element of at most 100 of [a-z0-9.-], beginning and ending with a
// letter or digit, without two dots in a row. The UIDs of an API server are of that form.
func validateUID(uid string) error {
	if len(uid) > 100 || !isPlain(uid) || strings.Contains(uid, "..") {
		return fmt.Errorf("UID %q must be 1 to 100 of [-.a-z0-9], beginning and ending with a letter or digit, without %q", clipped(uid), "..")
	}
	return nil
}

func namespaceProblem(name string) string {
	return fmt.Sprintf("%q must be at most 63 of [-a-z0-9], beginning and ending with a letter or digit", clipped(name))
}

func nameProblem(name string) string {
	return fmt.Sprintf("%q must be at most 253 of [-.a-z0-9], and each part between dots begin and end with a letter or digit", clipped(name))
}

func keyNameProblem(key string) string {
	return fmt.Sprintf("%q must be 1 to 253 of [-._a-zA-Z0-9], and neither be %q nor begin with %q", clipped(key), ".", "..")
}

func isNamespace(s string) bool { return len(s) <= 63 && isPlain(s) && !strings.Contains(s, ".") }

func isObjectName(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if !isPlain(part) {
			return false
		}
	}
	return len(s) <= 253
}

// isPlain reports whether s is not empty, holds only [-.a-z0-9], and begins and ends with a letter or digit.
func isPlain(s string) bool {
	for i := range len(s) {
		c := s[i]
		inner := i > 0 && i < len(s)-1
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || inner && (c == '-' || c == '.')) {
			return false
		}
	}
	return s != ""
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
