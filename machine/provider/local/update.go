// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/machine/provider"
)

// Plan compares what is asked for with what there is.
func (c *core) Plan(ctx context.Context, r provider.UpdateRequest, config Config) (provider.Plan, error) {
	token, err := c.begin(ctx, r.Ref)
	if err != nil {
		return provider.Plan{}, wrap("plan", token, err)
	}
	if err := c.hosts(config); err != nil {
		return provider.Plan{}, wrap("plan", token, err)
	}
	have, err := c.read(token)
	if err != nil {
		return provider.Plan{}, c.missing("plan", token, err)
	}
	if have.Owner.Cluster != r.Cluster {
		return provider.Plan{}, provider.Errorf(provider.NotFound, "plan machine %q: it is not of cluster %q", token, r.Cluster)
	}
	return have.plan(r, config, c.gone(have)), nil
}

// gone reports whether the process of a machine that should run has ended.
func (c *core) gone(r record) bool { return r.Phase == running && !c.alive(r.Process) }

// plan says what a change would do. Disks are never lost: a machine that takes the place of this one may adopt them.
func (r record) plan(u provider.UpdateRequest, config Config, gone bool) provider.Plan {
	switch {
	case r.Digest == u.Digest && r.Next == nil && r.Phase != starting:
		return provider.Plan{Method: provider.Nothing}
	case config.Offers.lacks(u.Desired.Versions) != "":
		return provider.Plan{Method: provider.Unsupported, Reason: config.Offers.lacks(u.Desired.Versions)}
	case r.deleted():
		return provider.Plan{Method: provider.Replace, Disrupts: true, Reason: "it is being deleted, or was"}
	case r.Phase == broken:
		return provider.Plan{Method: provider.Replace, Disrupts: true, Reason: "it could not be started"}
	}
	var other []string
	for field, same := range map[string]bool{
		"command":    slices.Equal(r.Config.Command, config.Command),
		"namespaces": r.Config.Namespaces == config.Namespaces,
		"disks":      slices.Equal(r.Config.Disks, config.Disks),
	} {
		if !same {
			other = append(other, field)
		}
	}
	if len(other) > 0 {
		slices.Sort(other)
		return provider.Plan{Method: provider.Replace, Disrupts: true, Reason: "other " + strings.Join(other, ", ")}
	}
	if why := r.restarts(config, gone); why != "" {
		return provider.Plan{Method: provider.InPlace, Disrupts: true, Reason: "its process is restarted: " + why}
	}
	return provider.Plan{Method: provider.InPlace, Reason: fmt.Sprintf("its files are written, and it is sent %s", config.ReloadSignal)}
}

// restarts says why an update restarts the process; "" if a signal is enough.
func (r record) restarts(config Config, gone bool) string {
	switch {
	case gone:
		return "it has ended"
	case config.ReloadSignal == "":
		return "there is no reloadSignal"
	case !maps.Equal(r.Config.Env, config.Env):
		return "other env"
	case r.Phase == starting || r.Phase == halting && r.Then == starting:
		return "it is being started"
	}
	return ""
}

// Update changes a machine in place: its files are written, and its process is told by the reload signal, or is restarted.
func (c *core) Update(ctx context.Context, r provider.UpdateRequest, config Config) (provider.Progress, error) {
	token, err := c.begin(ctx, r.Ref)
	if err == nil {
		err = checkJoin(r.Join)
	}
	if err == nil && r.Digest == "" {
		err = provider.Errorf(provider.InvalidConfig, "there is no digest")
	}
	if err == nil {
		err = c.hosts(config)
	}
	if err != nil {
		return provider.Progress{}, wrap("update", token, err)
	}
	h, err := c.ours(ctx, token, r.Cluster)
	if err != nil {
		return provider.Progress{}, c.missing("update", token, err)
	}
	defer h.release()
	p, err := c.update(ctx, h, r, config)
	return p, wrap("update", token, err)
}

func (c *core) update(ctx context.Context, h *held, r provider.UpdateRequest, config Config) (provider.Progress, error) {
	plan := h.plan(r, config, c.gone(h.record))
	switch {
	case plan.Method == provider.Nothing:
		return provider.Progress{Done: true}, nil
	case plan.Method != provider.InPlace:
		return provider.Progress{}, provider.Errorf(provider.NotSupported, "it can't be updated in place: %s", plan.Reason)
	case h.Phase == adopting:
		return provider.Progress{}, provider.Errorf(provider.Unavailable, "its disks are not there yet: adopt it once more")
	}
	if err := h.writeBootstrap(r.Join.Bootstrap); err != nil {
		return provider.Progress{}, err
	}
	if h.Phase == starting && h.Digest == r.Digest {
		return c.advance(ctx, h)
	}
	off := h.Phase == stopped || h.Phase == halting && h.Then == stopped
	h.Next = &change{Digest: r.Digest, Desired: r.Desired, Config: config, Endpoint: r.Join.Endpoint}
	if plan.Disrupts && !off {
		h.halt(starting, c.now())
	}
	if err := h.write(); err != nil {
		return provider.Progress{}, err
	}
	if plan.Disrupts && !off {
		return c.advance(ctx, h)
	}
	return c.reload(h)
}

// reload writes files and tells the process. What is stopped finds them when it starts.
func (c *core) reload(h *held) (provider.Progress, error) {
	before := h.Config.Files
	next := *h
	next.takeNext()
	if err := next.writeFiles(before); err != nil {
		return provider.Progress{}, err
	}
	c.at("written")
	if h.Phase == running && next.Config.ReloadSignal != "" {
		if err := c.tell(h, next.Config.ReloadSignal); err != nil {
			return provider.Progress{}, err
		}
		c.at("told")
	}
	h.takeNext()
	return provider.Progress{Done: true}, h.write()
}

// tell signals the first process of a machine.
func (c *core) tell(h *held, signal string) error {
	fd, err := unix.PidfdOpen(h.Process.PID, 0)
	if err != nil {
		return provider.Errorf(provider.Unavailable, "its process can't be told of new files: pidfd_open: %w", err)
	}
	defer func() { _ = unix.Close(fd) }() // only signalled with
	if !c.alive(h.Process) {
		return provider.Errorf(provider.Unavailable, "its process has ended, and can't be told of new files")
	}
	return c.signal(member{pid: h.Process.PID, fd: fd}, unix.SignalNum(signal))
}
