// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"testing"
	"time"

	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/providertest"
)

// R-MA-02, R-MA-06, R-MA-08, R-MA-24: the server keeps what a provider promises, with instances that take their time.
func TestConformance(t *testing.T) {
	c := newCloud(t)
	h := c.harness()
	h.Crash = c.crash
	h.Inject = func(f machinetest.Fault) func() { return c.suiteFault(f, time.Minute, func() { c.pass(time.Minute) }) }
	machinetest.Run(t, h)
}

// harness connects the suite with a cloud.
func (c served) harness() machinetest.Harness {
	kubelet := provider.Desired{Config: []byte(with(`"startMilliseconds": 2, "stopMilliseconds": 2, "releaseMilliseconds": 2`))}
	kubelet.Versions.Kubelet = "v1.36.4"
	image, size := kubelet, kubelet
	image.Config = []byte(with(`"image": "next"`))
	size.Config = []byte(with(`"size": "large"`))
	slow := provider.Desired{Config: []byte(with(`"updateMilliseconds": 5, "updates": {"image": "InPlace"}, "image": "next"`))}
	return machinetest.Harness{
		Name:          "fake",
		New:           func(context.Context) (provider.Provider, error) { return c.client(), nil },
		Config:        []byte(with(`"startMilliseconds": 2, "stopMilliseconds": 2, "releaseMilliseconds": 2`)),
		OtherConfig:   []byte(with(`"startMilliseconds": 3, "stopMilliseconds": 1`)),
		Zones:         [][]byte{[]byte(config), []byte(with(`"zone": "b"`)), []byte(with(`"zone": "c"`))},
		Updates:       []provider.Desired{kubelet, slow, image, size},
		Inventory:     c.holds,
		Running:       c.running,
		Boots:         c.boots,
		WriteSentinel: c.write,
		ReadSentinel:  c.read,
	}
}

func (c served) holds(ctx context.Context) (machinetest.Inventory, error) {
	i, err := c.admin.Inventory(ctx)
	return machinetest.Inventory{Instances: i.Instances, Disks: i.Disks}, err
}

func (c served) running(ctx context.Context, ref provider.Ref) (bool, error) {
	h, _, err := c.host(ctx, ref.Token)
	return h.State == provider.Running, err
}

func (c served) boots(ctx context.Context, ref provider.Ref) (int, error) {
	h, _, err := c.host(ctx, ref.Token)
	return h.Boots, err
}

func (c served) write(ctx context.Context, i provider.Instance, data []byte) error {
	for _, d := range i.Disks {
		if err := c.admin.WriteDisk(ctx, d.ID, data); err != nil {
			return err
		}
	}
	return nil
}

func (c served) read(ctx context.Context, i provider.Instance) ([]byte, error) {
	data, err := c.admin.ReadDisk(ctx, i.Disks[0].ID)
	if provider.ClassOf(err) == provider.NotFound {
		return nil, nil
	}
	return data, err
}

// suiteFault begins a fault that lasts until it is ended. A slow start takes so long, unless it can be passed over.
func (c served) suiteFault(f machinetest.Fault, slow time.Duration, pass func()) func() {
	const always = 1000
	faults := map[machinetest.Fault]providertest.Fault{
		machinetest.RateLimit:      {Kind: providertest.RateLimited, Count: always},
		machinetest.RateLimitAfter: {Kind: providertest.RateLimited, Count: always, Delay: 7 * time.Second},
		machinetest.Unavailable:    {Kind: providertest.Unavailable, Count: always},
		machinetest.LostReply:      {Kind: providertest.LostReply},
		machinetest.StaleList:      {Kind: providertest.StaleList, Count: always},
		machinetest.Stockout:       {Kind: providertest.Stockout, Count: always},
		machinetest.Unauthorized:   {Kind: providertest.Unauthorized, Count: always},
		machinetest.Latency:        {Kind: providertest.Latency, Count: always, Delay: time.Minute},
		machinetest.SlowStart:      {Kind: providertest.SlowStart, Count: always, Delay: slow},
	}
	c.inject(faults[f])
	return func() {
		if err := c.admin.Clear(context.WithoutCancel(c.t.Context())); err != nil {
			c.t.Error(err)
		}
		if f == machinetest.SlowStart {
			pass()
		}
	}
}

// crash kills the server at a point of a call, and opens it again.
func (c *cloud) crash(ctx context.Context, call machinetest.Call, point int) (bool, error) {
	c.inject(crashAt(point))
	err := call.Do(ctx, c.client())
	if c.died.Load() {
		wantClass(c.t, "a call in which the server was killed", err, provider.Unavailable)
		c.restart()
		return true, nil
	}
	return false, c.admin.Clear(ctx)
}

// crashAt kills a server before a call, after it, and before each operation on its files.
func crashAt(point int) providertest.Fault {
	switch point {
	case 0:
		return providertest.Fault{Kind: providertest.KillBefore}
	case 1:
		return providertest.Fault{Kind: providertest.KillAfter}
	}
	return providertest.Fault{Kind: providertest.KillWrite, Skip: point - 2}
}
