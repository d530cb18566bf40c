// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Policy says what an edit of the source object, made in place, means to the node.
type Policy string

const (
	// Pin is the zero value: what was adopted stays until the Spec names something else. The object must be immutable, or
	// the Spec must carry a digest; a mutable object without a digest is refused.
	Pin Policy = ""
	// Follow adopts edits made in place, each after a random delay so that a fleet does not restart together.
	Follow Policy = "Follow"
)

// A Spec names the config that a node should use.
type Spec struct {
	// Namespace and Name are those of the source object. Both are required.
	Namespace, Name string
	// UID, where set, must be the object's. A recreated object of the same name is then refused.
	UID string
	// Key is the entry of the object's data to decode. Empty means the Syncer's default key.
	Key string
	// Digest, where set, must equal [Object.Digest].
	Digest string
	// Policy says what edits in place mean.
	Policy Policy
	// Generation of the object that carries this Spec, for status; 0 where the source has none.
	Generation int64
}

// A Source says which config is wanted.
type Source interface {
	// Desired returns the wanted config. A nil Spec with a nil error means: use the local config. A [*InvalidError] means
	// that the source was read and makes no sense; [ErrMissing] and [ErrForbidden] that it isn't there or may not be
	// read; any other error that it couldn't be reached.
	Desired(ctx context.Context) (*Spec, error)
	// Watch calls changed, without arguments and possibly too often, after anything that may alter Desired's answer. It
	// returns when ctx ends, or earlier with an error, after which the Syncer calls it again, backing off.
	Watch(ctx context.Context, changed func()) error
}

// A Fetcher gets the object that a Spec names.
type Fetcher interface {
	// Fetch returns the whole object. Its errors wrap [ErrMissing], [ErrForbidden], [ErrMismatch] or [ErrUnreachable].
	Fetch(ctx context.Context, s Spec) (Object, error)
}

// A FollowFetcher is a Fetcher that can also watch the object. It is used under [Follow].
type FollowFetcher interface {
	Fetcher
	// WatchObject calls changed after anything that may alter Fetch's answer; it ends like [Source.Watch].
	WatchObject(ctx context.Context, s Spec, changed func()) error
}

// What may be wrong with a wanted config. Errors of sources and fetchers wrap these.
var (
	// ErrMissing means that the server answered and the object does not exist.
	ErrMissing = errors.New("object does not exist")
	// ErrForbidden means that the server answered and refused to show the object.
	ErrForbidden = errors.New("reading the object is forbidden")
	// ErrMismatch means that the object exists and is not the one that was named: another UID, another digest.
	ErrMismatch = errors.New("object is not the one that was named")
	// ErrMutable means that the object may change under its name, and the Spec neither pins a digest nor follows edits.
	ErrMutable = errors.New("object is mutable and the source neither names a digest nor follows edits")
	// ErrUnreachable means that no answer was had. It says nothing about the object.
	ErrUnreachable = errors.New("source is unreachable")
)

// An InvalidError says that a source was read and is not a correct one.
type InvalidError struct {
	// Field is the path of the wrong field, for example "spec.source.configMapRef.name". Empty for the source as a whole.
	Field string
	// Problem says what is wrong and what would be right.
	Problem string
}

// Error gives the problem in the words of the node condition.
func (e *InvalidError) Error() string {
	if e.Field == "" {
		return "invalid NodeConfigSource, " + e.Problem
	}
	return "invalid NodeConfigSource, " + e.Field + ": " + e.Problem
}

// CheckObject says whether obj is the object that spec names and may be used under its policy. Its errors wrap
// [ErrMismatch] and [ErrMutable]; a Fetcher may use it, the Syncer always does.
func CheckObject(spec Spec, obj Object) error {
	if err := validateUID(obj.UID); err != nil {
		return fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	name := obj.Namespace + "/" + obj.Name
	if want := spec.Namespace + "/" + spec.Name; name != want {
		return fmt.Errorf("%w: want %q, got %q", ErrMismatch, want, name)
	}
	if spec.UID != "" && spec.UID != obj.UID {
		return fmt.Errorf("%w: %q has UID %q, the source names UID %q", ErrMismatch, name, obj.UID, spec.UID)
	}
	if got := obj.Digest(); spec.Digest != "" && spec.Digest != got {
		return fmt.Errorf("%w: %q has digest %s, the source names %s", ErrMismatch, name, got, spec.Digest)
	}
	if spec.Policy == Pin && spec.Digest == "" && !obj.Immutable {
		return fmt.Errorf("%q: %w: set immutable: true on it, or digest or policy %q in the source", name, ErrMutable, Follow)
	}
	return nil
}

// problemAllNil is the text that people know and search for.
const problemAllNil = "exactly one subfield must be non-nil, but all were nil"

// Validate returns an [*InvalidError] that names the first field that is wrong, or nil. A Spec that names nothing at
// all is a source without a subfield. A missing UID is no error here: whether a digest, an immutable object or the
// policy stands in for it is known once the object was fetched; see [CheckObject].
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

// validateUID says whether uid can name a checkpoint: one path element of at most 100 of [a-z0-9.-], beginning and
// ending with a letter or digit, without two dots in a row. The UIDs of an API server are of that form.
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
