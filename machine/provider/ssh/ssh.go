// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine/provider"
)

// scheme is that of ProviderIDs: "ssh:///HOST/TOKEN".
const scheme = "ssh"

// A Provider makes machines of hosts that are there. Make it with [New]. It has every ability but Capacity and Group.
type Provider struct {
	made
	core *core
}

// made are the methods of the provider that New has made.
type made struct{ inner provider.Provider }

func (m made) innerProvider() (provider.Provider, error) {
	if m.inner == nil {
		return nil, option.NotMade("machine/provider/ssh.Provider", "machine/provider/ssh.New")
	}
	return m.inner, nil
}

// Create implements [provider.Provider].
func (m made) Create(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
	p, err := m.innerProvider()
	if err != nil {
		return provider.Instance{}, err
	}
	return p.Create(ctx, r)
}

// Get implements [provider.Provider].
func (m made) Get(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
	p, err := m.innerProvider()
	if err != nil {
		return provider.Instance{}, err
	}
	return p.Get(ctx, ref)
}

// List implements [provider.Provider].
func (m made) List(ctx context.Context, s provider.Scope) ([]provider.Instance, error) {
	p, err := m.innerProvider()
	if err != nil {
		return nil, err
	}
	return p.List(ctx, s)
}

// Delete implements [provider.Provider].
func (m made) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	p, err := m.innerProvider()
	if err != nil {
		return provider.Progress{}, err
	}
	return p.Delete(ctx, r)
}

// New checks the options. It talks to no host.
func New(o Options) (*Provider, error) {
	c, err := newCore(o)
	if err != nil {
		return nil, fmt.Errorf("ssh hosts: %w", err)
	}
	return &Provider{made{provider.Typed[Config](provider.Kind{APIVersion: apiVersion, Kind: kindName}, c)}, c}, nil
}

// Abilities are what it can do beyond the four methods.
func (p *Provider) Abilities() provider.Abilities { return provider.AbilitiesOf(p.inner) }

// core is a provider whose config is decoded.
type core struct {
	*client
	pool []Host
}

func newCore(o Options) (*core, error) {
	switch {
	case o.Hosts == nil && o.Inventory == nil:
		return nil, option.CheckRequired("machine/provider/ssh.New", "Options.Hosts or Options.Inventory", nil,
			"want either Hosts or Inventory")
	case o.Hosts != nil && o.Inventory != nil:
		return nil, errors.New("want either Hosts or Inventory")
	}
	if strings.ContainsAny(o.ControlDir, " \t\n%") {
		return nil, fmt.Errorf("ControlDir %q has blanks or percent signs, which ssh takes for something else", o.ControlDir)
	}
	hosts, err := checked(o.Hosts)
	if err != nil {
		return nil, err
	}
	bootFile := func(Host) string { return "/proc/sys/kernel/random/boot_id" }
	talk := &client{options: defaults(o), bootFile: bootFile, at: func(string) {}, slots: make(chan struct{}, maxExchanges), hosts: map[string]chan struct{}{}}
	return &core{client: talk, pool: hosts}, nil
}

// Get returns an instance. What a Create has begun and was cut off is gone on with.
func (c *core) Get(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
	token, _, err := named(ref)
	if err != nil {
		return provider.Instance{}, wrapCall("get", ref.Token, err)
	}
	s, err := c.find(ctx, ref)
	if err != nil {
		return provider.Instance{}, wrapCall("get", token, err)
	}
	if later, err := c.resume(ctx, s, token); err == nil { // otherwise it is as it was seen
		s = later
	}
	return s.view(token), nil
}

// resume goes on with a Create or an Adopt that was cut off, with the files that it has left on the host.
func (c *core) resume(ctx context.Context, s sight, token string) (sight, error) {
	_, v := s.rec.settle(s.answer)
	switch {
	case !s.rec.committed(token):
		return c.commit(ctx, s, token, nil)
	case s.rec.Phase == starting && v == cut:
		later, _, err := c.advance(ctx, s, nil)
		return later, err
	}
	return s, nil
}

// List returns the instances of a cluster. It fails if a host does not answer.
func (c *core) List(ctx context.Context, scope provider.Scope) ([]provider.Instance, error) {
	all, err := c.survey(ctx, "", "")
	if err == nil {
		err = unanswered(all)
	}
	if err != nil {
		return nil, wrap(fmt.Sprintf("list machines of cluster %.80q", scope.Cluster), err)
	}
	var found []provider.Instance
	for _, s := range all {
		if s.rec == nil {
			continue
		}
		if s.rec.Owner.Cluster == scope.Cluster {
			found = append(found, s.view(s.rec.Token))
		}
		if a := s.rec.adoption(); a != nil && a.Owner.Cluster == scope.Cluster {
			found = append(found, s.view(a.Token))
		}
	}
	return found, nil
}

// Console returns the end of what the scripts on a machine's host have printed since it was claimed.
func (c *core) Console(ctx context.Context, ref provider.Ref, limit int) ([]byte, error) {
	s, err := c.find(ctx, ref)
	if err == nil {
		limit = max(0, min(limit, maxAnswer/4))
		s.answer, err = c.ask(ctx, s.host, request{tail: limit})
	}
	if err != nil {
		return nil, wrapCall("console of", ref.Token, err)
	}
	return s.console[max(0, len(s.console)-limit):], nil
}
