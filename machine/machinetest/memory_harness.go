// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// Harness returns what the suite needs to check a Memory: all there is.
func (m *Memory) Harness() Harness { return m.harness(m) }

// harness is that of a provider on top of a Memory.
func (m *Memory) harness(p provider.Provider) Harness {
	config := []byte(`{"zone": "a", "image": "i1", "size": "s"}`)
	return Harness{
		Name:        "memory",
		New:         func(context.Context) (provider.Provider, error) { return p, nil },
		Config:      config,
		OtherConfig: []byte(`{"zone": "a", "image": "i2", "size": "s"}`),
		Zones:       [][]byte{config, []byte(`{"zone": "b", "image": "i1", "size": "s"}`)},
		Updates: []provider.Desired{
			{Config: []byte(`{"zone": "a", "image": "i2", "size": "s"}`)},
			{Config: config, Versions: provider.Versions{Kubelet: "v1.2.3"}},
			{Config: []byte(`{"zone": "a", "image": "i1", "size": "l"}`)},
			{Config: []byte(`{"zone": "b", "image": "i1", "size": "s"}`)},
		},
		Inventory: func(context.Context) (Inventory, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.inventory(), nil
		},
		Running:       m.running,
		Boots:         m.boots,
		WriteSentinel: m.writeSentinel,
		ReadSentinel:  m.readSentinel,
		Crash:         func(ctx context.Context, c Call, point int) (bool, error) { return crash(ctx, p, c, point), nil },
		Inject:        m.Inject,
		Wait:          5 * time.Second,
	}
}

func (m *Memory) running(_ context.Context, ref provider.Ref) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.vms[ref.Token]
	return v != nil && (v.State == provider.Running || v.State == provider.Stopping), nil
}

func (m *Memory) boots(_ context.Context, ref provider.Ref) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.vms[ref.Token]
	if v == nil {
		return 0, fmt.Errorf("there is no instance %q", ref.Token)
	}
	return v.boots, nil
}

func (m *Memory) writeSentinel(_ context.Context, i provider.Instance, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range i.Disks {
		if _, there := m.disks[d.ID]; there {
			m.disks[d.ID] = bytes.Clone(data)
			return nil
		}
	}
	return fmt.Errorf("instance %q has no disk that is there", i.Token)
}

func (m *Memory) readSentinel(_ context.Context, i provider.Instance) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range i.Disks {
		if data, there := m.disks[d.ID]; there {
			return bytes.Clone(data), nil
		}
	}
	return nil, nil
}
