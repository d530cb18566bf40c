// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"slices"

	"github.com/belayproject/belay/machine/provider"
)

// Create makes the instance of a token, or returns it.
func (m *Memory) Create(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
	return call(ctx, m, "Create", r.Token, func() (provider.Instance, error) { return m.create(ctx, r) })
}

func (m *Memory) create(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
	v, err := m.known("create", r)
	if err != nil {
		return provider.Instance{}, err
	}
	if v == nil {
		if v, err = m.fresh(r); err != nil {
			return provider.Instance{}, err
		}
	}
	if err := m.build(ctx, v); err != nil {
		return provider.Instance{}, err
	}
	return v.copy(), step(ctx)
}

// known returns what there is for a token, or nil.
func (m *Memory) known(verb string, r provider.CreateRequest) (*vm, error) {
	if err := provider.CheckToken(r.Token); err != nil {
		return nil, err
	}
	if m.used[r.Token] {
		return nil, provider.Errorf(provider.Conflict, "%s %q: the token was used up", verb, r.Token)
	}
	v := m.vms[r.Token]
	if v != nil && v.Digest != r.Digest {
		return nil, provider.Errorf(provider.Conflict, "%s %q: the instance has digest %q, want %q", verb, r.Token, v.Digest, r.Digest)
	}
	return v, nil
}

// fresh checks what is to be made. It has no effect.
func (m *Memory) fresh(r provider.CreateRequest) (*vm, error) {
	config, err := decodeConfig(r.Desired.Config)
	if err != nil {
		return nil, err
	}
	if m.full(1) {
		return nil, provider.Errorf(provider.Stockout, "create %q: there is no capacity", r.Token)
	}
	return &vm{
		Instance: provider.Instance{Token: r.Token, Owner: r.Owner, Digest: r.Digest, State: provider.Pending},
		config:   config, made: r, polls: map[string]int{}, rebooted: map[string]bool{},
	}, nil
}

func (m *Memory) full(more int) bool {
	return m.faults[Stockout] > 0 || m.Limit > 0 && m.inventory().Instances+more > m.Limit
}

// build does what has not been done yet: an entry, a disk, an identity. Its process may die between any two of them.
func (m *Memory) build(ctx context.Context, v *vm) error {
	if v.State == provider.Retained {
		return nil
	}
	if err := step(ctx); err != nil {
		return err
	}
	m.add(v)
	if err := step(ctx); err != nil {
		return err
	}
	if len(v.Disks) == 0 {
		d := provider.Disk{ID: "disk-" + v.Token, Bytes: 1 << 30}
		v.Disks, m.disks[d.ID] = []provider.Disk{d}, nil
	}
	if err := step(ctx); err != nil {
		return err
	}
	if v.ProviderID == "" {
		v.ProviderID, v.Addresses = provider.ProviderID("memory", v.config.Zone, v.Token), m.address()
	}
	m.start(v)
	return nil
}

// start lets an instance run that was asked for often enough.
func (m *Memory) start(v *vm) {
	if v.State == provider.Pending && v.ProviderID != "" && m.faults[SlowStart] == 0 && m.asked(v, "start") {
		v.State = provider.Running
		v.boots++
	}
}

// Get returns one instance.
func (m *Memory) Get(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
	return call(ctx, m, "Get", ref.Token, func() (provider.Instance, error) {
		v, err := m.any("get", ref.Token)
		if err != nil {
			return provider.Instance{}, err
		}
		m.start(v)
		return v.copy(), nil
	})
}

// List returns the instances of a cluster, by token.
func (m *Memory) List(ctx context.Context, s provider.Scope) ([]provider.Instance, error) {
	return call(ctx, m, "List", "", func() ([]provider.Instance, error) {
		for _, v := range m.vms {
			if v.Owner.Cluster == s.Cluster {
				m.start(v)
			}
		}
		return slices.DeleteFunc(slices.Clone(m.shown()), func(i provider.Instance) bool { return i.Owner.Cluster != s.Cluster }), nil
	})
}

// Delete stops an instance, and keeps its disks or not.
func (m *Memory) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	return call(ctx, m, "Delete", r.Ref.Token, func() (provider.Progress, error) { return m.delete(ctx, r) })
}

func (m *Memory) delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	done := provider.Progress{Done: true, Stopped: true}
	switch r.Mode {
	case "", provider.Retain, provider.Destroy:
	default:
		return provider.Progress{}, provider.Errorf(provider.InvalidConfig, "delete %q: mode %q is neither Retain nor Destroy", r.Ref.Token, r.Mode)
	}
	if m.vms[r.Ref.Token] == nil {
		m.useUp(r.Ref.Token) // a Create of it that comes late makes nothing
		return done, nil
	}
	v, err := m.find("delete", r.Ref.Token, r.Cluster)
	if err != nil {
		return provider.Progress{}, err
	}
	if stopped, err := m.stopping(ctx, v); !stopped || err != nil {
		return provider.Progress{Message: "it stops", AfterSeconds: 1}, err
	}
	if v.State != provider.Retained {
		v.Until = r.Until
	}
	if err := m.release(ctx, v, r.Mode); err != nil {
		return provider.Progress{}, err
	}
	if r.Mode != provider.Destroy {
		done.Retained = slices.Clone(v.Disks)
	}
	return done, step(ctx)
}

// stopping reports whether an instance that is being deleted has stopped.
func (m *Memory) stopping(ctx context.Context, v *vm) (bool, error) {
	if err := step(ctx); err != nil {
		return false, err
	}
	if !v.State.Alive() {
		return true, nil
	}
	v.State = provider.Stopping
	return m.asked(v, "delete"), step(ctx)
}

// release gives back what a stopped instance holds.
func (m *Memory) release(ctx context.Context, v *vm, mode provider.Mode) error {
	v.State, v.Addresses = provider.Retained, nil
	if mode != provider.Destroy && len(v.Disks) > 0 {
		return nil
	}
	if err := step(ctx); err != nil {
		return err
	}
	m.remove(v)
	return nil
}

func (m *Memory) inventory() Inventory {
	i := Inventory{Disks: len(m.disks)}
	for _, v := range m.vms {
		if v.State != provider.Retained {
			i.Instances++
		}
	}
	return i
}
