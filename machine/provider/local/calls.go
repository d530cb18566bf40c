// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os/exec"
	"slices"
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

// Create makes a machine and starts its process.
func (c *core) Create(ctx context.Context, r provider.CreateRequest, config Config) (provider.Instance, error) {
	token, err := c.begin(ctx, provider.Ref{Token: r.Token})
	if err == nil {
		err = c.able(r, config)
	}
	if err != nil {
		return provider.Instance{}, wrap("create", token, err)
	}
	h, err := c.claim(ctx, r)
	if err != nil {
		return provider.Instance{}, wrap("create", token, err)
	}
	defer h.release()
	fresh := !h.there
	if fresh {
		h.record = c.newRecord(r, config)
		h.Phase = starting
		if err := h.write(); err != nil {
			return provider.Instance{}, wrap("create", token, err)
		}
	}
	if h.Phase == starting {
		if err := h.join(r.Join); err != nil {
			return provider.Instance{}, wrap("create", token, err)
		}
		if err := c.start(ctx, h, fresh); err != nil {
			return provider.Instance{}, wrap("create", token, err)
		}
	}
	return c.view(h.record), nil
}

// able checks what is no matter of the config alone.
func (c *core) able(r provider.CreateRequest, config Config) error {
	if r.Digest == "" || r.Owner.Cluster == "" {
		return provider.Errorf(provider.InvalidConfig, "digest %q, cluster %q: want both", r.Digest, r.Owner.Cluster)
	}
	if err := checkJoin(r.Join); err != nil {
		return err
	}
	if err := c.hosts(config); err != nil {
		return err
	}
	if lacks := config.Offers.lacks(r.Desired.Versions); lacks != "" {
		return provider.Errorf(provider.InvalidConfig, "offers: %s", lacks)
	}
	return nil
}

// hosts checks a config against this host.
func (c *core) hosts(config Config) error {
	if config.Namespaces == Required && c.unshared != nil {
		return provider.Errorf(provider.InvalidConfig, "namespaces are Required, and can't be made here: %w", c.unshared)
	}
	if program := config.Command[0]; !strings.HasPrefix(program, filesDir+"/") {
		if _, err := exec.LookPath(program); err != nil {
			return provider.Errorf(provider.InvalidConfig, "command[0]: %w", err)
		}
	}
	return nil
}

// checkJoin returns an error that names a key of Bootstrap that can be no name of a file.
func checkJoin(j provider.Join) error {
	for name := range j.Bootstrap {
		if !plainPath(name) || strings.Contains(name, "/") {
			return provider.Errorf(provider.InvalidConfig, "bootstrap: key %.80q can be no name of a file", name)
		}
	}
	if strings.ContainsRune(j.Endpoint, 0) {
		return provider.Errorf(provider.InvalidConfig, "endpoint: it has a zero byte")
	}
	return nil
}

// claim holds the machine of a token that may be created: it is not there yet, or was made of the same.
func (c *core) claim(ctx context.Context, r provider.CreateRequest) (*held, error) {
	usedUp := func() error {
		used, err := c.buried(r.Token)
		if err == nil && used {
			err = provider.Errorf(provider.Conflict, "the token is used up: its machine was deleted, or its disks were given away")
		}
		return err
	}
	if err := usedUp(); err != nil { // before there is a directory
		return nil, err
	}
	h, err := c.hold(ctx, r.Token, true)
	if err != nil {
		return nil, err
	}
	if h.there {
		err = h.sameAs(r)
	} else if err = usedUp(); err != nil { // meanwhile
		err = errors.Join(err, c.remove(h))
	}
	if err != nil {
		h.release()
		return nil, err
	}
	return h, nil
}

// sameAs returns a Conflict error where the machine is not the one that is asked for.
func (h *held) sameAs(r provider.CreateRequest) error {
	switch {
	case h.Owner.Cluster != r.Owner.Cluster:
		return provider.Errorf(provider.Conflict, "the token is in use in another cluster")
	case r.Digest != h.Created && r.Digest != h.Digest && (h.Next == nil || r.Digest != h.Next.Digest):
		return provider.Errorf(provider.Conflict, "the token is in use: its machine was made of digest %.12q, and is asked for with %.12q", h.Created, r.Digest)
	}
	return nil
}

func (c *core) newRecord(r provider.CreateRequest, config Config) record {
	n := record{
		Token: r.Token, Owner: r.Owner, Created: r.Digest, Digest: r.Digest, Desired: r.Desired, Config: config, Endpoint: r.Join.Endpoint,
	}
	n.wantDisks()
	return n
}

// join takes over how the machine gets into its cluster.
func (h *held) join(j provider.Join) error {
	h.Endpoint = j.Endpoint
	return h.writeBootstrap(j.Bootstrap)
}

// settings are what machine.json says: what is no matter of this provider.
func (h *held) settings() ([]byte, error) {
	data, err := json.MarshalIndent(map[string]any{
		"token": h.token, "owner": h.Owner, "endpoint": h.Endpoint,
		"versions": h.Desired.Versions, "roles": h.Desired.Roles, "node": h.Desired.Node,
	}, "", "  ")
	return append(data, '\n'), err
}

// view is the record as others see it.
func (c *core) view(r record) provider.Instance {
	i := provider.Instance{
		Token: r.Token, ProviderID: c.id(r.Token), Owner: r.Owner, Digest: r.Digest, Disks: r.kept(), Message: r.Message,
	}
	switch r.Phase {
	case running:
		i.State = provider.Running
		if !c.alive(r.Process) {
			i.State, i.Message = provider.Broken, "its process has ended"
			if how := c.reaper.how(r.Token, r.Process); how != "" {
				i.Message += ": " + how
			}
		}
	case halting:
		i.State, i.Message = provider.Stopping, "is being stopped"
		if !r.deleted() {
			i.State = provider.Running
		}
	case destroying:
		i.State = provider.Stopping
	case stopped:
		i.State = provider.Stopped
	case retained:
		i.State, i.Until = provider.Retained, r.Until
	case broken:
		i.State = provider.Broken
	default:
		i.State = provider.Pending
	}
	return i
}

// Get reads one machine.
func (c *core) Get(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
	token, err := c.begin(ctx, ref)
	if err != nil {
		return provider.Instance{}, wrap("get", token, err)
	}
	i, err := c.look(token)
	if err != nil {
		return provider.Instance{}, c.missing("get", token, err)
	}
	return i, nil
}

// look reads one machine that may be changed meanwhile: a process that is not there may have been stopped since the record was read.
func (c *core) look(token string) (provider.Instance, error) {
	c.tidy(token)
	r, err := c.read(token)
	if err != nil {
		return provider.Instance{}, err
	}
	i := c.view(r)
	if r.Phase != running || i.State != provider.Broken {
		return i, nil
	}
	again, err := c.read(token)
	if err != nil || again.Phase == running && again.Process == r.Process {
		return i, err
	}
	return c.view(again), nil
}

// List reads all machines of a cluster. One that can't be read is an error: what is left out would be taken for gone.
func (c *core) List(ctx context.Context, s provider.Scope) ([]provider.Instance, error) {
	if err := c.usable(ctx); err != nil {
		return nil, wrap("list", "", err)
	}
	tokens, err := readNames(c.machines)
	if err != nil {
		return nil, wrap("list", "", err)
	}
	slices.Sort(tokens)
	var all []provider.Instance
	for _, token := range tokens {
		if provider.CheckToken(token) != nil {
			continue // none of ours
		}
		i, err := c.look(token)
		if errors.Is(err, fs.ErrNotExist) {
			continue // has just gone, or was never begun
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, wrap("list", token, err)
		}
		if i.Owner.Cluster == s.Cluster {
			all = append(all, i)
		}
	}
	return all, c.whole()
}

// Validate checks a config against this host. What the program can run is for Create and Plan to say: a machine that runs refuses a change to something
// else as Unsupported.
func (c *core) Validate(ctx context.Context, _ provider.Desired, config Config) error {
	if err := ctx.Err(); err != nil {
		return wrap("validate", "", err)
	}
	return c.hosts(config)
}
