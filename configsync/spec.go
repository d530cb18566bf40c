// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
)

// Policy says what an edit of the source object, made in place, means to the node.
type Policy string

const (
	// Pin is the zero value: what was adopted stays until the Spec names something else. The object must be immutable, or the
	// Spec must carry a digest; a mutable object without a digest is refused.
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
	// Desired returns the wanted config. A nil Spec with a nil error means: use the local config. A [*InvalidError] means that
	// the source was read and makes no sense; [ErrMissing] and [ErrForbidden] that it isn't there or may not be read; any other
	// error that it couldn't be reached.
	Desired(ctx context.Context) (*Spec, error)
	// Watch calls changed, without arguments and possibly too often, after anything that may alter Desired's answer. It returns
	// when ctx ends, or earlier with an error, after which the Syncer calls it again, backing off.
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
