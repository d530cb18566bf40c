// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// invalid asks a provider that can say so why the config of a machine can't be one, before there is any effect; empty if it can. It is asked once for each
// desire, as many machines are alike, and again for one that it has refused. Any other error is left to the call that makes the instance.
func (c *Controller) invalid(ctx context.Context, m machine.Machine) string {
	v, digest := c.can.Validator, m.Spec.Digest()
	unchanged := m.Token != "" && m.Status.Digest == digest && m.Phase != machine.PhaseRetired
	if v == nil || unchanged || m.Spec.Paused || !m.Deleted.IsZero() {
		return ""
	}
	now := c.o.Now()
	c.mu.Lock()
	k, there := c.valid[digest]
	c.mu.Unlock()
	if there && (k.until.IsZero() || now.Before(k.until)) {
		return k.value
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
	defer cancel()
	k = known[string]{}
	switch err := v.Validate(ctx, m.Spec.Desired); provider.ClassOf(err) {
	case "":
	case provider.InvalidConfig:
		k = known[string]{err.Error(), now.Add(provider.InvalidConfig.Backoff(1))}
	default:
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.valid) >= maxKnown {
		clear(c.valid)
	}
	c.valid[digest] = k
	return k.value
}

// Console returns the end of what the instance of a machine has printed, at most limit bytes, for somebody who looks into why it does not start. It may hold
// secrets, and is kept nowhere. A provider without a console is [provider.NotSupported]; absence of the machine is io/fs.ErrNotExist.
func (c *Controller) Console(ctx context.Context, key machine.Key, limit int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
	defer cancel()
	if c.can.Console == nil {
		return nil, provider.Errorf(provider.NotSupported, "console of machine %q: the provider has none", key)
	}
	m, err := c.o.Machines.Live(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case m.Token == "":
		return nil, provider.Errorf(provider.NotFound, "console of machine %q: it has no instance yet", key)
	}
	ref := provider.Ref{Token: m.Token}
	if m.Instance != nil {
		ref = m.Instance.Ref()
	}
	return c.can.Console.Console(ctx, ref, limit)
}
