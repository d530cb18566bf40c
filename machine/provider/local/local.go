// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine/provider"
)

// A Provider makes machines of processes on this host. Make it with [New]. It has every ability but Capacity and Group.
type Provider struct {
	made
	core *core
}

// made are the methods of the provider that New has made.
type made struct{ inner provider.Provider }

func (m made) innerProvider() (provider.Provider, error) {
	if m.inner == nil {
		return nil, option.NotMade("machine/provider/local.Provider", "machine/provider/local.New")
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

// New opens the root, or makes it. Machines that were made before are there again, also those of a process that was killed.
func New(ctx context.Context, o Options) (*Provider, error) {
	c, err := newCore(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("local machines in %q: %w", o.Root, err)
	}
	return &Provider{made{provider.Typed[Config](provider.Kind{APIVersion: APIVersion, Kind: KindName}, c)}, c}, nil
}

// Abilities are what it can do beyond the four methods.
func (p *Provider) Abilities() provider.Abilities { return provider.AbilitiesOf(p.inner) }

// Close ends the goroutine that waits for machines which this process has started, and waits for it. The machines run on. Later calls are
// Unavailable; none may be under way.
func (p *Provider) Close() error {
	if p.core == nil {
		return option.NotMade("machine/provider/local.Provider.Close", "machine/provider/local.New")
	}
	if p.core.closed.CompareAndSwap(false, true) {
		p.core.reaper.close()
		p.core.store.close()
	}
	return nil
}

// core is a provider whose config is decoded.
type core struct {
	*store
	zone     string
	limit    int64
	now      func() time.Time
	boot     string
	reaper   *reaper
	unshared error // why there are no namespaces; nil where there are
	closed   atomic.Bool

	signal func(member, unix.Signal) error // a test may refuse
}

func newCore(ctx context.Context, o Options) (*core, error) {
	if o.ConsoleLimit < 0 {
		return nil, fmt.Errorf("ConsoleLimit is %d: want 0 or more bytes", o.ConsoleLimit)
	}
	if strings.ContainsAny(o.Zone, " \t\n\x00") || o.Zone != strings.Trim(o.Zone, "/") {
		return nil, fmt.Errorf("zone %q has blanks, or begins or ends with a slash", o.Zone)
	}
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return nil, provider.Errorf(provider.NotSupported, "pidfd_open: %w: want Linux 5.4 or later", err)
	}
	_ = unix.Close(self) // it was a question
	s, err := openStore(o.Root)
	if err != nil {
		return nil, err
	}
	c := &core{store: s, zone: o.Zone, limit: cmp.Or(o.ConsoleLimit, maxTail), now: o.Now, boot: boot, signal: send}
	if c.now == nil {
		c.now = time.Now
	}
	err = lookAround(s)
	if err == nil {
		c.unshared = probe(ctx)
		c.reaper, err = newReaper()
	}
	if err = errors.Join(err, ctx.Err()); err != nil {
		if c.reaper != nil {
			c.reaper.close()
		}
		s.close()
		return nil, err
	}
	return c, nil
}

func (c *core) id(token string) string { return provider.ProviderID(scheme, c.zone, token) }

// confined reports whether a machine has namespaces.
func (c *core) confined(config Config) bool { return config.Namespaces != None && c.unshared == nil }

// begin checks what every call needs, and returns the token that a reference is about.
func (c *core) begin(ctx context.Context, ref provider.Ref) (string, error) {
	token := ref.Token
	if token == "" {
		token = provider.TokenOf(ref.ProviderID)
	}
	if err := c.usable(ctx); err != nil {
		return token, err
	}
	return token, provider.CheckToken(token)
}

func (c *core) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.closed.Load() {
		return provider.Errorf(provider.Unavailable, "the provider is closed")
	}
	return c.whole()
}

// missing makes of an error of the store what a call returns: where there is nothing, NotFound.
func (c *core) missing(op, token string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if err := c.whole(); err != nil {
			return wrap(op, token, err)
		}
		return provider.Errorf(provider.NotFound, "%s: there is no machine %q", op, token)
	}
	return wrap(op, token, err)
}

// wrap names the operation and keeps the class.
func wrap(op, token string, err error) error {
	if err == nil {
		return nil
	}
	class := provider.ClassOf(err)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		class = provider.Stockout
	}
	var own *provider.Error
	if errors.As(err, &own) {
		err = own.Err
	}
	if token == "" {
		return provider.Errorf(class, "%s: %w", op, err)
	}
	return provider.Errorf(class, "%s machine %q: %w", op, token, err)
}

// ours holds a machine of a cluster that has a record.
func (c *core) ours(ctx context.Context, token, cluster string) (*held, error) {
	h, err := c.hold(ctx, token, false)
	if err != nil {
		return nil, err
	}
	if !h.there || h.Owner.Cluster != cluster {
		h.release()
		return nil, fs.ErrNotExist
	}
	return h, nil
}
