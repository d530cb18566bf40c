// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"slices"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// scheme is that of a ProviderID.
const scheme = "fake"

// create makes the instance of a token.
func (s *Server) create(ctx context.Context, q createCall) (provider.Instance, error) {
	if err := checkMake(&q); err != nil {
		return provider.Instance{}, err
	}
	unlock, err := s.store.locks.lock(ctx, q.Request.Token, "group/"+q.Config.Group)
	if err != nil {
		return provider.Instance{}, err
	}
	defer unlock()
	now := s.now()
	r, there, err := s.known(q, now)
	switch {
	case err != nil:
		return provider.Instance{}, err
	case there:
		return r.instance(now), nil
	}
	if err := s.hasRoom("Create", q.Config); err != nil {
		return provider.Instance{}, err
	}
	r = s.made(q, now)
	return r.instance(now), s.store.make(r)
}

// checkMake completes and checks what asks for an instance.
func checkMake(q *createCall) error {
	if err := provider.CheckToken(q.Request.Token); err != nil {
		return err
	}
	if q.Request.Owner.Cluster == "" {
		return invalid("owner.cluster of token %q is empty: want the identity of a cluster", q.Request.Token)
	}
	return q.Config.complete()
}

// known returns the instance that a token has, if it is that of a request. The caller holds the lock of the token.
func (s *Server) known(q createCall, now time.Time) (record, bool, error) {
	token := q.Request.Token
	r, there, err := s.store.current(token, now)
	switch {
	case err != nil:
		return r, false, err
	case !there && s.store.isUsed(token):
		return r, false, provider.Errorf(provider.Conflict, "token %q is used up: its instance is gone", token)
	case there && r.Owner.Cluster != q.Request.Owner.Cluster:
		return r, false, provider.Errorf(provider.Conflict, "token %q is in use by another cluster", token)
	case there && q.Request.Digest != r.Asked && q.Request.Digest != r.Digest:
		return r, false, provider.Errorf(provider.Conflict, "token %q is in use with digest %.80q: want that, got %.80q", token, r.Digest, q.Request.Digest)
	}
	return r, there, nil
}

// hasRoom returns a Stockout if there is no capacity for an instance.
func (s *Server) hasRoom(method string, c Config) error {
	if _, out := s.faults.take(s.now(), method, c.Zone, Stockout); out {
		return provider.Errorf(provider.Stockout, "zone %q has no capacity for size %q", c.Zone, c.Size)
	}
	if size, room := s.store.room(c.Group); !room {
		return provider.Errorf(provider.Stockout, "group %q has the size %d and is full", c.Group, size)
	}
	return nil
}

// made is the record of a new instance.
func (s *Server) made(q createCall, now time.Time) record {
	r := q.record()
	r.ProviderID = provider.ProviderID(scheme, q.Config.Zone, r.Token)
	r.Disks = newDisks(r.Token, nil, q.Config.Disks)
	if _, ok := s.faults.take(now, "Create", "", Partial); ok {
		r.Phase, r.Stuck, r.ProviderID = on, true, ""
		return r
	}
	if other := s.other(r); other != "" {
		if _, ok := s.faults.take(now, "Create", "", DuplicateID); ok {
			r.ProviderID = other
		}
	}
	_, r.Fails = s.faults.take(now, "Create", "", StartFails)
	r.boot(now)
	if f, ok := s.faults.take(now, "Create", "", SlowStart); ok {
		r.Ready = r.Ready.Add(f.Delay)
	}
	return r
}

// record is what a request says of an instance.
func (q createCall) record() record {
	desired := q.Request.Desired
	desired.Config = nil
	return record{
		Token: q.Request.Token, Owner: q.Request.Owner, Asked: q.Request.Digest, Endpoint: q.Request.Join.Endpoint, Bootstrap: q.Bootstrap,
		wanted: wanted{Digest: q.Request.Digest, Desired: desired, Config: q.Config},
	}
}

// other is the ProviderID of another instance of the cluster, if a fault wants to know.
func (s *Server) other(r record) string {
	if !s.faults.has(DuplicateID) {
		return ""
	}
	for _, o := range s.store.all() {
		if o.Owner.Cluster == r.Owner.Cluster && o.Token != r.Token && o.ProviderID != "" {
			return o.ProviderID
		}
	}
	return ""
}

// newDisks adds to some disks those that a config names and that are not among them.
func newDisks(token string, have []disk, want []DiskConfig) []disk {
	disks := slices.Clone(have)
	for _, w := range want {
		if !slices.ContainsFunc(have, func(d disk) bool { return d.Name == w.Name }) {
			disks = append(disks, disk{ID: token + "." + w.Name, Name: w.Name, GiB: w.GiB})
		}
	}
	return disks
}

// get returns one instance.
func (s *Server) get(ctx context.Context, q refCall) (provider.Instance, error) {
	r, unlock, err := s.hold(ctx, q.Ref)
	if err != nil {
		return provider.Instance{}, err
	}
	defer unlock()
	return r.instance(s.now()), nil
}

// hold finds the instance of a reference and takes the lock of its token.
func (s *Server) hold(ctx context.Context, ref provider.Ref) (record, func(), error) {
	token, err := s.tokenOf(ref)
	if err != nil {
		return record{}, nil, err
	}
	unlock, err := s.store.locks.lock(ctx, token)
	if err != nil {
		return record{}, nil, err
	}
	r, there, err := s.store.current(token, s.now())
	if err == nil && !there {
		err = provider.Errorf(provider.NotFound, "there is no instance of token %q", token)
	}
	if err != nil {
		unlock()
		return record{}, nil, err
	}
	return r, unlock, nil
}

// tokenOf is the token that a reference means. A token that is given wins: a ProviderID may be wrong, see [DuplicateID].
func (s *Server) tokenOf(ref provider.Ref) (string, error) {
	if ref.Token != "" {
		return ref.Token, provider.CheckToken(ref.Token)
	}
	token := provider.TokenOf(ref.ProviderID)
	if token == "" {
		return "", invalid("the reference has no token, and providerID %.200q has none either", ref.ProviderID)
	}
	if _, there := s.store.get(token); there {
		return token, nil
	}
	for _, r := range s.store.all() { // one that was adopted while it ran has kept its ProviderID
		if r.ProviderID == ref.ProviderID {
			return r.Token, nil
		}
	}
	return token, nil
}

// list returns the instances of a cluster.
func (s *Server) list(ctx context.Context, scope provider.Scope) ([]provider.Instance, error) {
	if scope.Cluster == "" {
		return nil, invalid("cluster is empty: want the identity of a cluster")
	}
	now := s.now()
	var seen []provider.Instance
	if f, stale := s.faults.take(now, "List", "", StaleList); stale {
		seen = f.seen
	} else if err := s.store.settle(ctx, now); err != nil {
		return nil, err
	} else {
		seen = s.views(now)
	}
	return slices.DeleteFunc(slices.Clone(seen), func(i provider.Instance) bool { return i.Owner.Cluster != scope.Cluster }), nil
}

// views are all instances as callers see them.
func (s *Server) views(now time.Time) []provider.Instance {
	all := s.store.all()
	views := make([]provider.Instance, len(all))
	for i := range all {
		views[i] = all[i].instance(now)
	}
	return views
}

// delete begins or continues the end of an instance. A token that was never used is used up: a Create that is still on its way has no effect.
func (s *Server) delete(ctx context.Context, q provider.DeleteRequest) (provider.Progress, error) {
	token, err := s.tokenOf(q.Ref)
	if err != nil {
		return provider.Progress{}, err
	}
	if q.Mode == "" {
		q.Mode = provider.Retain
	}
	if q.Mode != provider.Retain && q.Mode != provider.Destroy {
		return provider.Progress{}, invalid("mode %.80q is unknown: want Retain or Destroy", q.Mode)
	}
	unlock, err := s.store.locks.lock(ctx, token)
	if err != nil {
		return provider.Progress{}, err
	}
	defer unlock()
	now := s.now()
	r, there, err := s.store.current(token, now)
	switch {
	case err != nil:
		return provider.Progress{}, err
	case !there && !s.store.isUsed(token):
		return gone, s.store.use(token, q.Cluster)
	case !there:
		return gone, nil
	case r.Owner.Cluster != q.Cluster:
		return provider.Progress{}, foreign(r.Token, q.Cluster)
	}
	return s.leave(r, q, now)
}

// gone is the progress of what is not there.
var gone = provider.Progress{Done: true, Stopped: true}

func foreign(token, cluster string) error {
	return provider.Errorf(provider.NotFound, "cluster %.80q has no instance of token %q", cluster, token)
}

// leave writes that an instance leaves, if it does not already, and what time makes of that.
func (s *Server) leave(r record, q provider.DeleteRequest, now time.Time) (provider.Progress, error) {
	was := r
	r.leave(now, q.Mode, q.Until)
	if r.settle(now) {
		return gone, s.store.destroy(r)
	}
	if r.Phase != was.Phase || r.Mode != was.Mode || !r.Until.Equal(was.Until) {
		if err := s.store.put(r); err != nil {
			return provider.Progress{}, err
		}
	}
	return r.progress(now), nil
}
