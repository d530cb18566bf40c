// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"slices"

	"github.com/belayproject/belay/machine/provider"
)

// maxReboot is the length of an ID of a reboot.
const maxReboot = 253

// Stop runs the stop script. The machine is stopped when the script has succeeded, the one that checks it too, and no process that bootstrap, update or
// start have begun is left.
func (c *core) Stop(ctx context.Context, ref provider.Ref) (p provider.Progress, err error) {
	err = retry(ctx, func() error {
		s, err := c.find(ctx, ref)
		if err != nil {
			return err
		}
		next := *s.rec
		switch next.Phase {
		case reserved, stopped, retained, cleaning, dirty:
			p = provider.Progress{Done: true, Stopped: true}
			return nil
		case halting:
		default:
			next.Phase, next.Then, next.Step, next.Next, next.Message = halting, stopped, step{Kind: stopStep}, nil, ""
		}
		s.rec = &next
		s, v, err := c.advance(ctx, s, nil)
		p = progress(s, v)
		return err
	})
	return p, wrapCall("stop", ref.Token, err)
}

// Reboot restarts the host once for each id. It is done when the host has another boot ID, and the start script, if there is one, has succeeded.
func (c *core) Reboot(ctx context.Context, ref provider.Ref, id string) (p provider.Progress, err error) {
	if id == "" || len(id) > maxReboot {
		return p, wrapCall("reboot", ref.Token, provider.Errorf(provider.InvalidConfig, "the ID of the reboot has %d bytes: want 1 to %d", len(id), maxReboot))
	}
	err = retry(ctx, func() (err error) {
		s, err := c.find(ctx, ref)
		if err == nil {
			p, err = c.reboot(ctx, s, id)
		}
		return err
	})
	return p, wrapCall("reboot", ref.Token, err)
}

func (c *core) reboot(ctx context.Context, s sight, id string) (provider.Progress, error) {
	seen, v := s.rec.settle(s.answer)
	switch {
	case s.rec.Phase == rebooting && s.rec.Reboot == id || s.rec.Phase == starting && s.rec.Step.Kind == startStep && slices.Contains(s.rec.Reboots, id):
		return c.rebooted(ctx, s)
	case slices.Contains(seen.Reboots, id):
		return provider.Progress{Done: true}, nil
	case seen.deleted() || seen.Phase == broken || seen.Phase == reserved:
		return provider.Progress{}, provider.Errorf(provider.Conflict, "the machine is %s: want one that runs or is stopped", seen.Phase)
	case seen.Config.RebootCommand == "":
		return provider.Progress{}, provider.Errorf(provider.NotSupported, "the config has no rebootCommand")
	case seen.Phase == stopped && seen.Config.Start == "":
		return provider.Progress{}, provider.Errorf(provider.NotSupported, "the machine is stopped, and the config has no start script")
	case v == underWay || v == cut:
		return waiting(sight{answer: answer{rec: &seen}, host: s.host}), nil
	}
	seen.Phase, seen.Boot, seen.Reboot, seen.Step, seen.Message = rebooting, s.boot, id, step{Kind: rebootStep}, ""
	s.rec = &seen
	return c.rebooted(ctx, s)
}

func (c *core) rebooted(ctx context.Context, s sight) (provider.Progress, error) {
	s, v, err := c.advance(ctx, s, nil)
	if err != nil || v == settled {
		return provider.Progress{Done: err == nil}, err
	}
	return waiting(s), nil
}
