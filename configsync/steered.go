// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/lkg"
)

// A Finder says which object a config is that has a name and, unless that is empty, a digest: [Object.Digest].
// [InNamespace] is one. Its errors are told apart as those of a [Fetcher] are.
type Finder func(ctx context.Context, name, digest string) (Spec, error)

// InNamespace finds each config in the object of its name in a namespace.
func InNamespace(namespace string) Finder {
	return func(_ context.Context, name, digest string) (Spec, error) {
		return Spec{Namespace: namespace, Name: name, Digest: digest}, nil
	}
}

// A Steered is a [Syncer] that is told by calls which config is wanted, instead of by a [Source]: by a rollout, say. It
// is the ConfigSyncer of package rollout/nodeagent. Configs are spelled "name@digest", or "name" where nothing is
// pinned; the empty text is the local config. Its methods may be called at the same time.
type Steered[T any] struct {
	*Syncer[T]
	find   Finder
	wanted *wanted
}

// NewSteered is [New] for a Steered. The options have no Source, and the others that one requires. What is wanted is
// kept in o.Store, in the stream "wanted". Where nothing was adopted yet, or that can't be read any more, what is
// assigned stays wanted.
func NewSteered[T any](ctx context.Context, o Options[T], find Finder) (*Steered[T], error) {
	check := option.For("configsync.NewSteered", nil)
	check.Require("find", find, "see InNamespace")
	if o.Source != nil {
		check.Wrong("Options.Source must be nil: the calls of Adopt are the source")
	}
	if err := check.Err(); err != nil {
		return nil, err
	}
	w := &wanted{key: o.Key, turn: newSemaphore()}
	o.Source = w
	s, err := New(ctx, o)
	if err != nil {
		return nil, err
	}
	w.load(ctx, o.Store, s.tracker.State().Current.Ref)
	return &Steered[T]{s, find, w}, nil
}

// Configs returns the config in use, the last known good one, and the suspect: the config that is wanted, while it is
// open whether it is to blame for its crashes. It may be in use, or be left for another one and used again later. There
// is none if that is empty. The error is [ErrNotStarted] before Bootstrap.
func (s *Steered[T]) Configs(context.Context) (inUse, lastKnownGood, suspect string, err error) {
	if s.isMade() != nil {
		return "", "", "", errNotMade
	}
	now, st := s.live.snapshot(), s.tracker.State()
	if now.epoch == 0 {
		return "", "", "", ErrNotStarted
	}
	if suspectsCurrent(&st) {
		suspect = s.wanted.nameOf(st.Current.Ref)
	}
	return s.wanted.nameOf(now.active.Ref), s.wanted.nameOf(st.LastKnownGood), suspect, nil
}

// suspectsCurrent reports whether a case is open against the assigned config.
func suspectsCurrent(st *lkg.State) bool {
	c, r := st.Case, st.Current.Ref
	return c != nil && !r.IsLocal() && r.Same(lkg.Ref{UID: c.Suspect.UID, Key: c.Suspect.Key, Digest: c.Suspect.Digest}) &&
		st.BadEntry(r) == nil
}

// Adopt makes a config the wanted one. It returns when that is on record; then Run fetches, checks, stores and adopts
// it like that of any source, and goes on trying where it can't. What is wanted already changes nothing, what is listed
// as bad is an error.
//
// Where the Finder could not ask, had no answer in time, or was not let read, the error has a method Temporary() bool
// that returns true: nothing is known of the config, nothing has changed, and Adopt may be called again.
func (s *Steered[T]) Adopt(ctx context.Context, config string) error {
	if s.isMade() != nil {
		return errNotMade
	}
	if s == nil || s.wanted == nil {
		return errNotMade
	}
	if err := s.wanted.turn.acquire(ctx); err != nil {
		return err
	}
	defer s.wanted.turn.release()
	next := s.wanted.snapshot()
	same := next.Config == config
	if !same {
		var err error
		if next, err = s.buildRecord(ctx, next, config); err != nil {
			return markUnknown(fmt.Errorf("configsync: config %q: %w", config, err))
		}
	}
	if next.Spec != nil {
		if e := s.findListed(func(r lkg.Ref) bool { return next.Spec.means(r, s.o.Key) }); e != nil {
			return fmt.Errorf("configsync: config %q is listed as bad: %s", config, e.Reason)
		}
	}
	if same {
		return nil
	}
	return s.wanted.store(ctx, s.o.Store, next)
}

// An unknownError leaves open whether a config can be adopted.
type unknownError struct{ error }

// Temporary reports that it may be different the next time.
func (unknownError) Temporary() bool { return true }

// Unwrap gives what was in the way.
func (e unknownError) Unwrap() error { return e.error }

// markUnknown marks an error that says nothing about the config. Who may read it is no property of the config,
// either: an authorizer that has just started may know of no right yet.
func markUnknown(err error) error {
	for _, e := range []error{ErrUnreachable, ErrForbidden, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return unknownError{err}
		}
	}
	return err
}

// buildRecord is the record in which a config is wanted.
func (s *Steered[T]) buildRecord(ctx context.Context, r record, config string) (record, error) {
	r.Config, r.Spec = config, nil
	if config == "" {
		return r, nil
	}
	name, digest, _ := strings.Cut(config, "@")
	ctx, cancel := context.WithTimeout(ctx, s.o.CallTimeout)
	defer cancel()
	spec, err := s.find(ctx, name, digest)
	if err == nil && digest != "" && spec.Digest != "" && spec.Digest != digest {
		err = fmt.Errorf("%w: it has digest %s", ErrMismatch, spec.Digest)
	}
	if spec.Digest == "" {
		spec.Digest = digest
	}
	if err == nil && spec.Policy != Pin {
		err = &InvalidError{Field: "policy", Problem: "must be empty: what is adopted by name is not to change under it"}
	}
	if err == nil {
		err = spec.Validate()
	}
	if err != nil {
		return r, err
	}
	r.Spec = newWantedSpec(spec)
	return r.addName(config, *r.Spec), nil
}

// findListed is the entry that is held against the config that is meant, or nil: one of its object that holds for the
// present program, or one of another object with its content, where it is assigned or was good.
func (s *Steered[T]) findListed(means func(lkg.Ref) bool) *lkg.BadEntry {
	st := s.tracker.State()
	refs := []lkg.Ref{st.Current.Ref, st.LastKnownGood, st.Previous}
	for _, e := range st.Bad {
		refs = append(refs, e.Ref)
	}
	for _, r := range refs {
		if r.IsLocal() || !means(r) {
			continue
		}
		if e := st.BadEntry(r); e != nil {
			return e
		}
	}
	return nil
}

// Judge says whether a config has passed its trial, or is listed as bad, and why. Neither means that this is open.
func (s *Steered[T]) Judge(ctx context.Context, config string) (good, bad bool, why string, err error) {
	if err := s.isMade(); err != nil {
		return false, false, "", err
	}
	if config == "" {
		return true, false, "the node came with it", nil
	}
	if e := s.findListed(func(r lkg.Ref) bool { return s.wanted.is(config, r) }); e != nil {
		return false, true, e.Reason, nil
	}
	st := s.tracker.State()
	for _, r := range []lkg.Ref{st.LastKnownGood, st.Previous} {
		if !r.IsLocal() && s.wanted.is(config, r) {
			return true, false, "it has passed its trial", nil
		}
	}
	now := s.status(ctx)
	if why = now.Condition.Message + ": " + now.Condition.Reason; now.Error != "" {
		why = now.Error
	}
	return false, false, why, nil
}

// GoBack leaves the config in use for the last known good one, and lists it as bad for that reason, until it is
// forgotten. It returns when that is on record; Run does the rest.
func (s *Steered[T]) GoBack(ctx context.Context, config, reason string) error {
	if s.isMade() != nil {
		return errNotMade
	}
	inUse := s.live.snapshot().active.Ref
	if inUse.IsLocal() || !s.wanted.is(config, inUse) {
		return fmt.Errorf("configsync: config %q is not in use, or is the one that the node came with: there is nothing to leave", config)
	}
	if err := s.tracker.Reject(ctx, inUse, reason); err != nil {
		return fmt.Errorf("configsync: leaving config %q: %w", config, err)
	}
	wake(s.notes.sync)
	s.notes.announce()
	return nil
}

// Disruption says what the change from the config in use to another one takes from the node, in the words of a
// rollout's agent: None, Restart or Drain. It is empty where that is not known: without Options.Changes, or while the
// other config can't be had. refused is why the change would be refused; empty where it would not. Nothing is adopted.
// The error is [ErrNotStarted] before Bootstrap.
func (s *Steered[T]) Disruption(ctx context.Context, config string) (word, refused string, err error) {
	if s.isMade() != nil {
		return "", "", errNotMade
	}
	now := s.live.snapshot()
	switch {
	case now.epoch == 0:
		return "", "", ErrNotStarted
	case s.o.Changes == nil:
		return "", "", nil
	}
	to, ok := s.findEntry(ctx, now.book, config)
	if !ok {
		return "", "", nil
	}
	word, err = s.o.Changes.Judge([]byte(now.active.Object.Data[now.active.Key]), to)
	switch {
	case err == nil:
		return word, "", nil
	case s.isWayBack(config):
		return "", "", nil // it is open, whatever it takes
	}
	return "", err.Error(), nil
}

// isWayBack reports whether a config is one that the node goes back to without being asked.
func (s *Steered[T]) isWayBack(config string) bool {
	good := s.tracker.State().LastKnownGood
	return config == "" || !good.IsLocal() && s.wanted.is(config, good)
}

// findEntry gives the text of a config by its name: what is stored, before what the server has.
func (s *Steered[T]) findEntry(ctx context.Context, b *book[T], config string) (text []byte, ok bool) {
	if config == "" {
		return b.page(ctx, lkg.Ref{}).text(s.o.Key), true
	}
	st := s.tracker.State()
	for _, r := range []lkg.Ref{st.LastKnownGood, st.Previous, st.Current.Ref} {
		if r.IsLocal() || !s.wanted.is(config, r) {
			continue
		}
		if obj, err := s.adopter.checker.objects.load(ctx, r); err == nil {
			return []byte(obj.Data[s.adopter.checker.keyFor(r.Key)]), true
		}
	}
	r, err := s.buildRecord(ctx, record{}, config)
	if err != nil {
		return nil, false
	}
	spec := Spec{Namespace: r.Spec.Namespace, Name: r.Spec.Name, UID: r.Spec.UID, Key: r.Spec.Key, Digest: r.Spec.Digest}
	obj, err := s.adopter.fetch(ctx, spec)
	return []byte(obj.Data[s.adopter.checker.keyFor(spec.Key)]), err == nil
}
