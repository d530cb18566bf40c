// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"context"

	"github.com/belayproject/belay/lkg"
)

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
	to, ok := s.entry(ctx, now.book, config)
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

// entry gives the text of a config by its name: what is stored, before what the server has.
func (s *Steered[T]) entry(ctx context.Context, b *book[T], config string) (text []byte, ok bool) {
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
	r, err := s.want(ctx, record{}, config)
	if err != nil {
		return nil, false
	}
	spec := Spec{Namespace: r.Spec.Namespace, Name: r.Spec.Name, UID: r.Spec.UID, Key: r.Spec.Key, Digest: r.Spec.Digest}
	obj, err := s.adopter.fetch(ctx, spec)
	return []byte(obj.Data[s.adopter.checker.keyFor(spec.Key)]), err == nil
}
