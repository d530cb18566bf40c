// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/belayproject/belay/machine/provider"
)

// Adopt makes a machine that has the disks of a retained one, and starts it.
func (c *core) Adopt(ctx context.Context, r provider.AdoptRequest, config Config) (provider.Instance, error) {
	token, err := c.begin(ctx, provider.Ref{Token: r.As.Token})
	var from string
	if err == nil {
		from, err = c.begin(ctx, r.From)
	}
	if err == nil {
		err = c.able(r.As, config)
	}
	if err != nil {
		return provider.Instance{}, wrap("adopt as", token, err)
	}
	if from == token {
		i, err := c.rename(ctx, r.As)
		return i, wrap("adopt as", token, err)
	}
	i, err := c.adopt(ctx, r.As, from, config)
	return i, wrap("adopt as", token, err)
}

// rename gives a machine that keeps its token to another owner.
func (c *core) rename(ctx context.Context, as provider.CreateRequest) (provider.Instance, error) {
	h, err := c.ours(ctx, as.Token, as.Owner.Cluster)
	if errors.Is(err, fs.ErrNotExist) {
		return provider.Instance{}, provider.Errorf(provider.NotFound, "there is no machine of that token in cluster %q", as.Owner.Cluster)
	}
	if err != nil {
		return provider.Instance{}, err
	}
	defer h.release()
	if h.deleted() {
		return provider.Instance{}, provider.Errorf(provider.Conflict, "it was deleted, and can only be adopted with a new token")
	}
	h.Owner = as.Owner
	return c.view(h.record), h.write()
}

func (c *core) adopt(ctx context.Context, as provider.CreateRequest, from string, config Config) (provider.Instance, error) {
	h, err := c.claim(ctx, as)
	if err != nil {
		return provider.Instance{}, err
	}
	defer h.release()
	if h.there && h.From != from {
		return provider.Instance{}, provider.Errorf(provider.Conflict, "the token is in use: its machine was not made of %q", from)
	}
	if !h.there {
		h.record = c.newRecord(as, config)
		h.Phase, h.From, h.Disks = adopting, from, nil
		err = c.giveDisks(ctx, h)
	} else if h.Phase == adopting {
		err = c.takeDisks(ctx, h)
	}
	if err != nil {
		if !h.there { // nothing was done
			err = errors.Join(err, c.remove(h))
		}
		return provider.Instance{}, err
	}
	if h.Phase == starting {
		if err := h.join(as.Join); err != nil {
			return provider.Instance{}, err
		}
		if err := c.start(ctx, h, false); err != nil {
			return provider.Instance{}, err
		}
	}
	return c.view(h.record), nil
}

// source holds the machine that disks are taken from. No two calls wait for each other's machine: one that is already the source of somebody gives
// way at once, as it is retained, and none that is retained is ever the one that takes.
func (c *core) source(ctx context.Context, h *held) (*held, error) {
	from, err := c.ours(ctx, h.From, h.Owner.Cluster)
	if errors.Is(err, fs.ErrNotExist) {
		if err := c.whole(); err != nil {
			return nil, err
		}
		return nil, provider.Errorf(provider.NotFound, "there is no machine %q in cluster %q", h.From, h.Owner.Cluster)
	}
	return from, err
}

// giveDisks writes on both sides that the disks go from one to the other, and moves them.
func (c *core) giveDisks(ctx context.Context, h *held) error {
	from, err := c.source(ctx, h)
	if err != nil {
		return err
	}
	defer from.release()
	if from.Phase != retained {
		return provider.Errorf(provider.NotSupported, "%q is not retained: its token can't be changed before it is deleted with Retain", from.token)
	}
	if from.To != h.token {
		if err := c.promised(from); err != nil {
			return err
		}
	}
	from.To, h.Disks = h.token, from.Disks
	if err := from.write(); err != nil {
		return err
	}
	if err := h.write(); err != nil {
		return err
	}
	return c.move(h, from)
}

// promised returns a Conflict error while the disks of a machine are being given to one that has accepted them. One that has not, and was
// interrupted, may come too late.
func (c *core) promised(from *held) error {
	if from.To == "" {
		return nil
	}
	to, err := c.read(from.To)
	if err == nil && to.Phase == adopting && to.From == from.token {
		return provider.Errorf(provider.Conflict, "the disks of %q are being given to %q: adopt that once more, or delete it", from.token, from.To)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// takeDisks goes on after a crash.
func (c *core) takeDisks(ctx context.Context, h *held) error {
	from, err := c.hold(ctx, h.From, false)
	if errors.Is(err, fs.ErrNotExist) {
		if err := c.whole(); err != nil {
			return err
		}
		_ = c.machines.Remove(h.From) // an empty directory that a crash may have left
		return c.adopted(h)           // the disks were moved, and their machine was removed
	}
	if err != nil {
		return err
	}
	defer from.release()
	if from.there {
		return c.move(h, from)
	}
	if err := c.remove(from); err != nil {
		return err
	}
	return c.adopted(h)
}

// move moves the disks and removes what is left of their machine.
func (c *core) move(h, from *held) error {
	err := c.machines.Rename(filepath.Join(from.token, dataDir), filepath.Join(h.token, dataDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // moved already
		return err
	}
	if err := errors.Join(syncDir(h.Root, "."), syncDir(from.Root, ".")); err != nil {
		return err
	}
	c.at("moved")
	if err := c.bury(tombstone{Token: from.token, Owner: from.Owner, To: h.token}); err != nil {
		return err
	}
	if err := c.remove(from); err != nil {
		return err
	}
	c.at("removed")
	return c.adopted(h)
}

// adopted lets a machine start that has its disks.
func (c *core) adopted(h *held) error {
	h.Phase = starting
	h.wantDisks()
	if err := h.write(); err != nil {
		return err
	}
	return nil
}
