// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine/provider"
)

// atATime is how many hosts are asked at a time by one call.
const atATime = 16

// A sight is what was seen of one host.
type sight struct {
	answer
	host Host
	err  error
}

// inventory returns the hosts of the pool.
func (c *core) inventory(ctx context.Context) ([]Host, error) {
	if c == nil {
		return nil, option.NotMade("machine/provider/ssh.Provider", "machine/provider/ssh.New")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.options.Inventory == nil {
		return c.pool, nil
	}
	hosts, err := c.options.Inventory(ctx)
	if err == nil {
		hosts, err = checked(hosts)
	}
	if err != nil {
		return nil, provider.Errorf(provider.Unavailable, "inventory: %w", err)
	}
	return hosts, nil
}

// survey looks at all hosts but one. Each of them has an answer or an error.
func (c *core) survey(ctx context.Context, token, but string) ([]sight, error) {
	hosts, err := c.inventory(ctx)
	if err != nil {
		return nil, err
	}
	var (
		wg   sync.WaitGroup
		all  = make([]sight, len(hosts))
		slot = make(chan struct{}, atATime)
	)
	for i, h := range hosts {
		if h.Name == but {
			continue
		}
		slot <- struct{}{}
		wg.Go(func() {
			defer func() { <-slot }()
			all[i] = c.look(ctx, h, token)
		})
	}
	wg.Wait()
	return slices.DeleteFunc(all, func(s sight) bool { return s.host.Name == "" }), nil
}

func (c *core) look(ctx context.Context, h Host, token string) sight {
	a, err := c.ask(ctx, h, request{token: token})
	return sight{a, h, err}
}

// unanswered is an error if not every host has answered: what is not seen may be there.
func unanswered(all []sight) error {
	var (
		errs  []error
		class provider.Class
	)
	for _, s := range all {
		if s.err == nil {
			continue
		}
		if c := provider.ClassOf(s.err); class == "" || class == c {
			class = c
		} else {
			class = provider.Unavailable
		}
		if len(errs) < 3 {
			errs = append(errs, plain(s.err))
		}
	}
	if class == "" {
		return nil
	}
	return provider.Errorf(class, "not every host of the pool has answered: %w", errors.Join(errs...))
}

// claims are the sights of hosts that have a claim for a token: the committed ones first, then those that adopt, then in the order of the token.
func claims(all []sight, token string) []sight {
	var found []sight
	for _, s := range all {
		if s.err == nil && s.rec != nil && s.rec.of(token) {
			found = append(found, s)
		}
	}
	rank := func(s sight) int {
		switch {
		case s.rec.committed(token):
			return 0
		case s.rec.Token != token:
			return 1
		}
		return 2
	}
	slices.SortFunc(found, func(a, b sight) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(place(token, a.host), place(token, b.host)))
	})
	return found
}

// place orders hosts for a token, in another way for each, so that many calls at a time do not all want the same host.
func place(token string, h Host) string {
	sum := sha256.Sum256([]byte(token + "\x00" + h.Name))
	return string(sum[:])
}

func spent(all []sight) bool {
	return slices.ContainsFunc(all, func(s sight) bool { return s.err == nil && s.used })
}

// find returns the sight of an instance. A ProviderID that names a host is enough; otherwise all hosts are asked.
func (c *core) find(ctx context.Context, ref provider.Ref) (sight, error) {
	s, all, err := c.seek(ctx, ref)
	if err == nil && s.rec == nil {
		err = provider.Errorf(provider.NotFound, "no host of %d has a claim of it", len(all))
	}
	return s, err
}

// seek is find that also returns all sights. Where there is no instance, for certain, the sight has no record.
func (c *core) seek(ctx context.Context, ref provider.Ref) (sight, []sight, error) {
	token, host, err := named(ref)
	if err != nil {
		return sight{}, nil, err
	}
	var all []sight
	if host != "" {
		h, err := c.named(ctx, host)
		if err != nil {
			return sight{}, nil, err
		}
		all = []sight{c.look(ctx, h, token)}
	} else if all, err = c.survey(ctx, token, ""); err != nil {
		return sight{}, nil, err
	}
	found := claims(all, token)
	switch {
	case len(found) > 1 && found[1].rec.committed(token):
		return sight{}, all, twice(found)
	case len(found) > 0:
		return found[0], all, nil
	}
	return sight{}, all, unanswered(all)
}

func twice(found []sight) error {
	return provider.Errorf(provider.Conflict, "hosts %q and %q both have it: one of them was out of the pool. Take one out again, or delete its claim",
		found[0].host.Name, found[1].host.Name)
}

// named splits a reference into its token and the host, if it names one.
func named(ref provider.Ref) (token, host string, err error) {
	token = ref.Token
	path, ok := strings.CutPrefix(ref.ProviderID, scheme+":///")
	if token == "" {
		token = provider.TokenOf(ref.ProviderID)
	}
	if err := provider.CheckToken(token); err != nil {
		return token, "", err
	}
	if host, last, found := strings.Cut(path, "/"); ok && found && last == token {
		return token, host, nil
	}
	return token, "", nil
}

func (c *core) named(ctx context.Context, name string) (Host, error) {
	hosts, err := c.inventory(ctx)
	if err != nil {
		return Host{}, err
	}
	if i := slices.IndexFunc(hosts, func(h Host) bool { return h.Name == name }); i >= 0 {
		return hosts[i], nil
	}
	return Host{}, provider.Errorf(provider.Unavailable, "host %q is not in the pool of %d hosts", name, len(hosts))
}

func providerID(host, token string) string { return provider.ProviderID(scheme, host, token) }

// view is the instance of a token as it is seen. What is settled and not written yet counts.
func (s sight) view(token string) provider.Instance {
	r, v := s.rec.settle(s.answer)
	sp := r.spec
	if a := r.adoption(); a != nil && a.Token == token {
		sp = *a
	}
	i := provider.Instance{
		Token: sp.Token, ProviderID: providerID(s.host.Name, sp.Token), Owner: sp.Owner, State: stateOf(r), Digest: sp.Digest, Addresses: s.host.addresses(),
		Message: r.Message,
	}
	if sp.Token == r.Token && r.Phase != reserved {
		i.Disks = s.host.disks()
	}
	if r.Token != sp.Token || r.Phase == starting && v == failed {
		i.State = provider.Pending
	}
	if r.Phase == retained && sp.Token == r.Token {
		i.Until = r.Until
	}
	return i
}

func stateOf(r record) provider.State {
	switch r.Phase {
	case reserved, starting:
		return provider.Pending
	case running, updating, rebooting:
		return provider.Running
	case stopped:
		return provider.Stopped
	case retained:
		return provider.Retained
	case dirty, broken:
		return provider.Broken
	}
	return provider.Stopping
}

func (h Host) disks() []provider.Disk { return []provider.Disk{{ID: h.Name + ":" + h.data()}} }

func (h Host) addresses() []provider.Address {
	kind := "InternalDNS"
	if net.ParseIP(h.Address) != nil {
		kind = "InternalIP"
	}
	return []provider.Address{{Type: "Hostname", Address: h.Name}, {Type: kind, Address: h.Address}}
}

// wrap names what was done and keeps the class.
func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return provider.Errorf(provider.ClassOf(err), "%s: %w", op, plain(err))
}

// plain is an error without its class, which is said once.
func plain(err error) error {
	var own *provider.Error
	if errors.As(err, &own) {
		return own.Err
	}
	return err
}

func wrapCall(op, token string, err error) error {
	if err == nil {
		return nil
	}
	return wrap(fmt.Sprintf("%s machine %.80q", op, token), err)
}
