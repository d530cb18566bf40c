// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/belayproject/belay/machine/provider"
)

// Delete stops a machine, and removes its directory or keeps the disks in it.
func (c *core) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	token, err := c.begin(ctx, r.Ref)
	if err == nil && r.Mode != "" && r.Mode != provider.Retain && r.Mode != provider.Destroy {
		err = provider.Errorf(provider.InvalidConfig, "mode %q is none of Retain, Destroy", r.Mode)
	}
	if err != nil {
		return provider.Progress{}, wrap("delete", token, err)
	}
	h, err := c.hold(ctx, token, false)
	if errors.Is(err, fs.ErrNotExist) {
		if h, err = c.preclude(ctx, token); h == nil && err == nil {
			return provider.Progress{Done: true, Stopped: true}, nil
		}
	}
	if err != nil {
		return provider.Progress{}, wrap("delete", token, err)
	}
	defer h.release()
	p, err := c.delete(ctx, h, r)
	return p, wrap("delete", token, err)
}

// preclude uses up the token of a machine that is not there: a Create of it that is still on its way comes too late. It returns the machine if that
// was made meanwhile.
func (c *core) preclude(ctx context.Context, token string) (*held, error) {
	if err := c.whole(); err != nil {
		return nil, err
	}
	if err := c.bury(tombstone{Token: token}); err != nil {
		return nil, err
	}
	h, err := c.hold(ctx, token, false)
	if errors.Is(err, fs.ErrNotExist) {
		_ = c.machines.Remove(token) // an empty directory that a crash may have left
		return nil, nil
	}
	return h, err
}

func (c *core) delete(ctx context.Context, h *held, r provider.DeleteRequest) (provider.Progress, error) {
	if !h.there { // never begun, or as good as removed
		if err := c.bury(tombstone{Token: h.token}); err != nil {
			return provider.Progress{}, err
		}
		return provider.Progress{Done: true, Stopped: true}, c.remove(h)
	}
	if h.Owner.Cluster != r.Cluster {
		return provider.Progress{}, provider.Errorf(provider.NotFound, "it is not of cluster %q", r.Cluster)
	}
	if err := c.promised(h); err != nil {
		return provider.Progress{}, err
	}
	h.To = ""
	if h.Phase == adopting {
		if err := c.takeDisks(ctx, h); err != nil {
			return provider.Progress{}, err
		}
	}
	then, until := retained, h.Until
	h.Until = r.Until
	if r.Mode == provider.Destroy {
		then = destroying
	}
	switch {
	case h.Phase == destroying: // it may have lost data already
	case h.Phase == retained && then == retained && h.Until.Equal(until):
		return c.advance(ctx, h)
	case h.Phase == retained:
		h.Phase = then
	default:
		h.halt(then, c.now())
	}
	if err := h.write(); err != nil {
		return provider.Progress{}, err
	}
	return c.advance(ctx, h)
}

// Stop ends the process of a machine. Its bootstrap files are removed; a reboot starts it again.
func (c *core) Stop(ctx context.Context, ref provider.Ref) (provider.Progress, error) {
	h, token, err := c.switched(ctx, ref)
	if err != nil {
		return provider.Progress{}, c.missing("stop", token, err)
	}
	defer h.release()
	if !h.deleted() && h.Phase != stopped && (h.Phase != halting || h.Then != stopped) {
		h.halt(stopped, c.now())
		if err := h.write(); err != nil {
			return provider.Progress{}, wrap("stop", token, err)
		}
	}
	p, err := c.advance(ctx, h)
	return p, wrap("stop", token, err)
}

// Reboot stops the process and starts it again, once for an ID. One that has ended or was stopped is started.
func (c *core) Reboot(ctx context.Context, ref provider.Ref, id string) (provider.Progress, error) {
	h, token, err := c.switched(ctx, ref)
	if err != nil {
		return provider.Progress{}, c.missing("reboot", token, err)
	}
	defer h.release()
	switch {
	case id == "" || len(id) > 253:
		err = provider.Errorf(provider.InvalidConfig, "an ID of %d bytes: want 1 to 253", len(id))
	case h.deleted():
		err = provider.Errorf(provider.Conflict, "it is being deleted, or was")
	case slices.Contains(h.Reboots, id):
		if h.Phase != starting { // and not there yet
			return provider.Progress{Done: true}, nil
		}
	case h.Reboot != id || h.Phase != halting || h.Then != starting:
		h.Reboot = id
		h.halt(starting, c.now())
		err = h.write()
	}
	if err != nil {
		return provider.Progress{}, wrap("reboot", token, err)
	}
	p, err := c.advance(ctx, h)
	return p, wrap("reboot", token, err)
}

// switched holds a machine that is to be stopped or started. References name no cluster there.
func (c *core) switched(ctx context.Context, ref provider.Ref) (*held, string, error) {
	token, err := c.begin(ctx, ref)
	if err != nil {
		return nil, token, err
	}
	h, err := c.hold(ctx, token, false)
	if err != nil {
		return nil, token, err
	}
	if !h.there || h.Phase == adopting {
		h.release()
		if !h.there {
			return nil, token, fs.ErrNotExist
		}
		return nil, token, provider.Errorf(provider.Unavailable, "its disks are not there yet: adopt it once more")
	}
	return h, token, nil
}
