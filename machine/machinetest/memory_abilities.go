// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// Plan says what a change would do.
func (m *Memory) Plan(ctx context.Context, r provider.UpdateRequest) (provider.Plan, error) {
	return call(ctx, m, "Plan", r.Ref.Token, func() (provider.Plan, error) {
		v, err := m.find("plan", r.Ref.Token, r.Cluster)
		if err != nil {
			return provider.Plan{}, err
		}
		plan, _, err := v.plan(r)
		return plan, err
	})
}

func (v *vm) plan(r provider.UpdateRequest) (provider.Plan, memoryConfig, error) {
	want, err := decodeConfig(r.Desired.Config)
	if err != nil {
		return provider.Plan{}, want, err
	}
	plan := provider.Plan{Method: provider.InPlace, Disrupts: true, Reason: "it is restarted"}
	switch {
	case v.State == provider.Retained:
		plan = provider.Plan{Method: provider.Unsupported, Reason: "it is retained"}
	case v.Digest == r.Digest:
		plan = provider.Plan{Method: provider.Nothing}
	case want.Zone != v.config.Zone:
		plan = provider.Plan{Method: provider.Unsupported, Reason: fmt.Sprintf("it is in zone %q and can't go to %q", v.config.Zone, want.Zone)}
	case want.Size != v.config.Size:
		plan = provider.Plan{Method: provider.Replace, Disrupts: true, Lost: slices.Clone(v.Disks),
			Reason: fmt.Sprintf("its size is %q and can't become %q", v.config.Size, want.Size)}
	}
	return plan, want, nil
}

// Update changes an instance in place.
func (m *Memory) Update(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
	return call(ctx, m, "Update", r.Ref.Token, func() (provider.Progress, error) { return m.update(ctx, r) })
}

func (m *Memory) update(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
	v, err := m.find("update", r.Ref.Token, r.Cluster)
	if err != nil {
		return provider.Progress{}, err
	}
	plan, want, err := v.plan(r)
	switch {
	case err != nil:
		return provider.Progress{}, err
	case plan.Method == provider.Nothing:
		return provider.Progress{Done: true}, step(ctx)
	case plan.Method != provider.InPlace:
		return provider.Progress{}, provider.Errorf(provider.NotSupported, "update %q: %s", v.Token, plan.Reason)
	}
	if err := step(ctx); err != nil {
		return provider.Progress{}, err
	}
	if !m.asked(v, "update "+r.Digest) {
		return provider.Progress{Message: "it restarts", AfterSeconds: 1}, step(ctx)
	}
	delete(v.polls, "update "+r.Digest)
	v.config, v.Digest = want, r.Digest
	v.made.Desired, v.made.Digest = r.Desired, r.Digest
	v.boots++
	if v.State == provider.Broken { // it is started anew, with what may be right
		v.State, v.Message = provider.Running, ""
	}
	return provider.Progress{Done: true}, step(ctx)
}

// Validate checks a config.
func (m *Memory) Validate(ctx context.Context, d provider.Desired) error {
	_, err := call(ctx, m, "Validate", "", func() (memoryConfig, error) { return decodeConfig(d.Config) })
	return err
}

// Stop switches an instance off.
func (m *Memory) Stop(ctx context.Context, ref provider.Ref) (provider.Progress, error) {
	return call(ctx, m, "Stop", ref.Token, func() (provider.Progress, error) {
		v, err := m.any("stop", ref.Token)
		if err != nil {
			return provider.Progress{}, err
		}
		if v.State.Alive() {
			if !m.asked(v, "stop") {
				return provider.Progress{Message: "it stops", AfterSeconds: 1}, nil
			}
			delete(v.polls, "stop")
			v.State = provider.Stopped
		}
		return provider.Progress{Done: true, Stopped: true}, nil
	})
}

// Reboot restarts an instance once for each id, and starts one that is stopped.
func (m *Memory) Reboot(ctx context.Context, ref provider.Ref, id string) (provider.Progress, error) {
	return call(ctx, m, "Reboot", ref.Token, func() (provider.Progress, error) {
		v, err := m.any("reboot", ref.Token)
		switch {
		case err != nil:
			return provider.Progress{}, err
		case v.State == provider.Retained, v.State == provider.Stopping, v.State == provider.Broken:
			return provider.Progress{}, provider.Errorf(provider.NotSupported, "reboot %q: it is %s", v.Token, v.State)
		case v.rebooted[id]:
			return provider.Progress{Done: true}, nil
		case !m.asked(v, "reboot "+id):
			return provider.Progress{Message: "it restarts", AfterSeconds: 1}, nil
		}
		v.rebooted[id], v.State = true, provider.Running
		v.boots++
		return provider.Progress{Done: true}, nil
	})
}

// Adopt makes an instance from what a retained one has left, or gives one that is alive to another owner.
func (m *Memory) Adopt(ctx context.Context, r provider.AdoptRequest) (provider.Instance, error) {
	return call(ctx, m, "Adopt", r.As.Token, func() (provider.Instance, error) { return m.adopt(ctx, r) })
}

func (m *Memory) adopt(ctx context.Context, r provider.AdoptRequest) (provider.Instance, error) {
	v, err := m.known("adopt as", r.As)
	if err != nil {
		return provider.Instance{}, err
	}
	if v == nil {
		if v, err = m.inherit(ctx, r); err != nil {
			return provider.Instance{}, err
		}
	}
	if err := m.build(ctx, v); err != nil {
		return provider.Instance{}, err
	}
	return v.copy(), step(ctx)
}

// inherit moves what there is from one token to another.
func (m *Memory) inherit(ctx context.Context, r provider.AdoptRequest) (*vm, error) {
	from, err := m.any("adopt from", r.From.Token)
	if err != nil {
		return nil, err
	}
	config, err := decodeConfig(r.As.Desired.Config)
	if err != nil {
		return nil, err
	}
	if err := step(ctx); err != nil {
		return nil, err
	}
	v := *from
	v.Token, v.Owner, v.made = r.As.Token, r.As.Owner, r.As
	if v.State == provider.Retained {
		v.State, v.ProviderID, v.Digest, v.Until = provider.Pending, "", r.As.Digest, time.Time{}
		v.polls = map[string]int{}
		config.Zone = v.config.Zone // disks do not move
		v.config = config
	}
	m.useUp(from.Token)
	m.add(&v)
	return &v, nil
}

// Capacity returns what Nodes of a config would have.
func (m *Memory) Capacity(ctx context.Context, d provider.Desired) (map[string]string, error) {
	return call(ctx, m, "Capacity", "", func() (map[string]string, error) {
		config, err := decodeConfig(d.Config)
		switch {
		case err != nil:
			return nil, err
		case config.Size == "l":
			return map[string]string{"cpu": "4", "memory": "16Gi"}, nil
		}
		return map[string]string{"cpu": "1", "memory": "4Gi"}, nil
	})
}

// Console says how often an instance was started.
func (m *Memory) Console(ctx context.Context, ref provider.Ref, limit int) ([]byte, error) {
	return call(ctx, m, "Console", ref.Token, func() ([]byte, error) {
		v, err := m.any("console", ref.Token)
		if err != nil {
			return nil, err
		}
		var out []byte
		for n := range v.boots {
			out = fmt.Appendf(out, "start %d of %s\n", n+1, v.Token)
		}
		return out[max(len(out)-max(limit, 0), 0):], nil
	})
}

// Resize refuses sizes that there is no capacity for.
func (m *Memory) Resize(ctx context.Context, name string, size int, d provider.Desired) error {
	_, err := call(ctx, m, "Resize", "", func() (none struct{}, _ error) {
		if _, err := decodeConfig(d.Config); err != nil {
			return none, err
		}
		if size < 0 {
			return none, provider.Errorf(provider.InvalidConfig, "resize group %q: size %d is less than 0", name, size)
		}
		if m.faults[Stockout] > 0 || m.Limit > 0 && size > m.Limit {
			return none, provider.Errorf(provider.Stockout, "resize group %q: there is no capacity for %d", name, size)
		}
		return none, nil
	})
	return err
}
