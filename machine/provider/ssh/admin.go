// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"

	"github.com/belayproject/belay/machine/provider"
)

// A HostState is what a host of the pool is.
type HostState string

// States of hosts.
const (
	// hostFree is offered to the next machine.
	hostFree HostState = "Free"
	// hostReserved is claimed, and is being made a machine.
	hostReserved HostState = "Reserved"
	// hostInUse has a machine, running or not.
	hostInUse HostState = "InUse"
	// hostRetained has the data of a machine that was deleted.
	hostRetained HostState = "Retained"
	// hostDirty has things on it that nobody claims: cleaning up has failed, or there is data without a claim. It is not
	// offered.
	hostDirty HostState = "Dirty"
	// hostUnknown has not answered.
	hostUnknown HostState = "Unknown"
)

// A HostStatus is what a host says, for administrators.
type HostStatus struct {
	Name  string
	State HostState
	// Instance is the one that has claimed it.
	Instance provider.Instance
	// Err is why it has not answered.
	Err error
}

// Hosts returns what each host of the pool is. A host that does not answer is Unknown; the error is about the
// inventory.
func (p *Provider) Hosts(ctx context.Context) ([]HostStatus, error) {
	all, err := p.core.survey(ctx, "", "")
	if err != nil {
		return nil, wrap("look at hosts", err)
	}
	var status []HostStatus
	for _, s := range all {
		h := HostStatus{Name: s.host.Name, State: s.state(), Err: s.err}
		if s.err == nil && s.rec != nil {
			h.Instance = s.view(s.rec.Token)
		}
		status = append(status, h)
	}
	return status, nil
}

func (s sight) state() HostState {
	switch {
	case s.err != nil:
		return hostUnknown
	case s.rec == nil && s.data:
		return hostDirty
	case s.rec == nil:
		return hostFree
	}
	switch r, v := s.rec.settle(s.answer); {
	case r.Phase == reserved || r.Phase == starting && (v != settled):
		return hostReserved
	case r.Phase == retained:
		return hostRetained
	case r.Phase == dirty:
		return hostDirty
	}
	return hostInUse
}

// Clean wipes the data of a host that is Dirty, and frees it. It is for administrators, who have looked at it before.
// It is idempotent and says how far it is; a host that is anything else is Conflict, but Free is done.
func (p *Provider) Clean(ctx context.Context, host string) (progress provider.Progress, err error) {
	err = retry(ctx, func() (err error) {
		progress, err = p.core.clean(ctx, host)
		return err
	})
	return progress, wrap("clean", err)
}

// nobody owns what is cleaned without a claim.
const nobody = "nobody"

func (c *core) clean(ctx context.Context, host string) (provider.Progress, error) {
	h, err := c.named(ctx, host)
	if err != nil {
		return provider.Progress{}, err
	}
	s := c.look(ctx, h, "")
	if s.err != nil {
		return provider.Progress{}, s.err
	}
	next := record{Phase: cleaning, Step: step{Kind: cleanupStep}}
	switch state := s.state(); {
	case state == hostFree:
		return provider.Progress{Done: true, Stopped: true}, nil
	case s.rec != nil && s.rec.Phase == cleaning:
		next = *s.rec
	case state != hostDirty:
		return provider.Progress{}, provider.Errorf(provider.Conflict, "host %q is %s: only a dirty one is cleaned", host, state)
	case s.rec != nil:
		next.spec, next.Host, next.Serial = s.rec.spec, s.rec.Host, s.rec.Serial
	default:
		next.spec = spec{Token: nobody, Owner: provider.Owner{Cluster: nobody, Name: nobody}, Config: Config{TimeoutSeconds: maxSeconds}}
	}
	s.rec = &next
	s, v, err := c.advance(ctx, s, nil)
	return progress(s, v), err
}
