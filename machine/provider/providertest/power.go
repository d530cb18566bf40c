// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// stop switches an instance off.
func (s *Server) stop(ctx context.Context, q refCall) (provider.Progress, error) {
	r, unlock, err := s.hold(ctx, q.Ref)
	if err != nil {
		return provider.Progress{}, err
	}
	defer unlock()
	now := s.now()
	if r.Phase == on {
		r.stop(now)
		if err := s.store.put(r); err != nil {
			return provider.Progress{}, err
		}
	}
	return r.progress(now), nil
}

// reboot starts an instance again, once for each id. One that is off or broken is started too.
func (s *Server) reboot(ctx context.Context, q refCall) (provider.Progress, error) {
	if q.ID == "" || len(q.ID) > 253 {
		return provider.Progress{}, invalid("the id of the reboot of %q has %d bytes: want 1 to 253", q.Ref.Token, len(q.ID))
	}
	r, unlock, err := s.hold(ctx, q.Ref)
	if err != nil {
		return provider.Progress{}, err
	}
	defer unlock()
	now := s.now()
	switch {
	case r.Phase == leaving || r.Phase == retained || r.Stuck:
		state, why := r.state(now)
		return provider.Progress{}, provider.Errorf(provider.Conflict, "instance %q can't be rebooted: it is %s, %s", r.Token, state, why)
	case !slices.Contains(r.Reboots, q.ID):
		r.Reboots = append(slices.Clone(r.Reboots), q.ID)
		r.Fails = false
		r.boot(now)
		if err := s.store.put(r); err != nil {
			return provider.Progress{}, err
		}
	}
	if r.Phase == on && now.Before(r.Ready) {
		return provider.Progress{Message: "it is starting", AfterSeconds: seconds(r.Ready.Sub(now))}, nil
	}
	return provider.Progress{Done: true}, nil
}

// console returns the end of what an instance has printed.
func (s *Server) console(ctx context.Context, q refCall) ([]byte, error) {
	r, unlock, err := s.hold(ctx, q.Ref)
	if err != nil {
		return nil, err
	}
	defer unlock()
	text := strings.Join(append(slices.Clone(r.Console), ""), "\n")
	return []byte(text[max(0, len(text)-max(0, q.Limit)):]), nil
}

// adopt makes an instance from what another one has left, or gives a running one another owner.
func (s *Server) adopt(ctx context.Context, q adoptCall) (provider.Instance, error) {
	if err := checkMake(&q.As); err != nil {
		return provider.Instance{}, err
	}
	token := q.As.Request.Token
	from, err := s.tokenOf(q.From)
	if err != nil {
		return provider.Instance{}, err
	}
	if from == token {
		return provider.Instance{}, invalid("instance %q is to be adopted by its own token: want a new one", from)
	}
	unlock, err := s.store.locks.lock(ctx, from, token, "group/"+q.As.Config.Group)
	if err != nil {
		return provider.Instance{}, err
	}
	defer unlock()
	now := s.now()
	r, there, err := s.known(q.As, now)
	switch {
	case err != nil:
		return provider.Instance{}, err
	case there && r.From != from:
		return provider.Instance{}, provider.Errorf(provider.Conflict, "token %q is in use: it has not adopted instance %q", token, from)
	case there:
		return r.instance(now), nil
	}
	if r, err = s.takeOver(from, q.As, now); err != nil {
		return provider.Instance{}, err
	}
	return r.instance(now), nil
}

// takeOver gives an instance to another token.
func (s *Server) takeOver(from string, as createCall, now time.Time) (record, error) {
	old, there, err := s.store.current(from, now)
	switch {
	case err != nil:
		return record{}, err
	case !there:
		return record{}, provider.Errorf(provider.NotFound, "there is no instance of token %q to adopt", from)
	case old.Phase == leaving:
		return record{}, provider.Errorf(provider.Conflict, "instance %q is being deleted: it can be adopted when it is retained", from)
	}
	r := as.record()
	state, _ := old.state(now)
	if state.Alive() {
		r = old
		r.Token, r.Owner, r.Asked = as.Request.Token, as.Request.Owner, as.Request.Digest
	} else if r, err = s.restarted(r, old, now); err != nil {
		return record{}, err
	}
	r.From = from
	return r, s.store.takeOver(r, old)
}

// restarted is a new instance with the disks of an old one.
func (s *Server) restarted(r, old record, now time.Time) (record, error) {
	if r.Config.Zone != old.Config.Zone {
		return r, invalid("zone is %q: want %q, where the disks of instance %q are", r.Config.Zone, old.Config.Zone, old.Token)
	}
	if err := s.hasRoom("Adopt", r.Config); err != nil {
		return r, err
	}
	r.Disks = newDisks(r.Token, old.Disks, r.Config.Disks)
	r.ProviderID = provider.ProviderID(scheme, r.Config.Zone, r.Token)
	r.boot(now)
	return r, nil
}
