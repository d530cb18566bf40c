// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machineqemu

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // boot.sh
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/local"
)

// boot is what a machine runs.
//
//go:embed boot.sh
var boot string

// Options are what a [Provider] works with.
type Options struct {
	// Root is as in [local.Options].
	Root string
	// Images are what machines can be booted with, by name. An image that machines have must stay.
	Images map[string]Image
	// Qemu is the emulator; "" is qemu-system-x86_64.
	Qemu string
}

// An Image is what a machine is booted with: the paths of a kernel and of its initial file system.
type Image struct{ Kernel, Initrd string }

// A Provider makes virtual machines on this host. Make it with [New]. Its abilities are those of a [local.Provider].
type Provider struct {
	provider.Provider
	local *local.Provider
}

// zone is a part of each ProviderID: "local:///qemu/TOKEN".
const zone = "qemu"

// New opens the root, or makes it.
func New(ctx context.Context, o Options) (*Provider, error) {
	l, err := local.New(ctx, local.Options{Root: o.Root, Zone: zone})
	if err != nil {
		return nil, err
	}
	c := &core{Provider: l, Abilities: l.Abilities(), images: o.Images, qemu: cmp.Or(o.Qemu, emulator)}
	return &Provider{Provider: provider.Typed[Config](provider.Kind{APIVersion: APIVersion, Kind: KindName}, typed{c}), local: l}, nil
}

// Abilities are what it can do beyond the four methods.
func (p *Provider) Abilities() provider.Abilities { return provider.AbilitiesOf(p.Provider) }

// Close is as of a [local.Provider]: the machines run on.
func (p *Provider) Close() error { return p.local.Close() }

// core has the machines as processes.
type core struct {
	*local.Provider
	provider.Abilities
	images map[string]Image
	qemu   string
}

// machine is the machine of package local that a config stands for. Another config with the same disks differs in the environment alone, so that it is
// an update in place, and a restart.
func (c *core) machine(d provider.Desired, digest string, config Config) (provider.Desired, error) {
	image, there := c.images[config.Kernel]
	if !there {
		return d, provider.Errorf(provider.InvalidConfig, "kernel: there is no image %.80q: want one of %q", config.Kernel, slices.Sorted(maps.Keys(c.images)))
	}
	data, err := json.Marshal(local.Config{
		Kind:    provider.Kind{APIVersion: local.APIVersion, Kind: local.KindName},
		Command: []string{"/bin/sh", "files/boot.sh"},
		Files:   []local.File{{Path: "boot.sh", Content: boot}},
		Disks:   config.Disks,
		Env: map[string]string{
			"QEMU": c.qemu, "KERNEL": image.Kernel, "INITRD": image.Initrd, "MEMORY_MIB": strconv.FormatInt(config.MemoryMiB, 10),
			"DISKS": strings.Join(config.Disks, " "), "DISK_MIB": strconv.FormatInt(config.DiskMiB, 10), "BOOT": bootMark(digest, config),
		},
		GraceSeconds: 1, // qemu ends at once when it is asked to, and what hangs loses no more than in a power cut
	})
	d.Config = data
	return d, err
}

// bootMark tells the console of a boot from that of the boot before another change.
func bootMark(digest string, config Config) string {
	return fmt.Sprintf("%s as %.16s", config.Kernel, digest)
}

// joined reports whether the guest has joined since it was last switched on, after a change that was made.
func (c *core) joined(ctx context.Context, r provider.UpdateRequest, config Config) (provider.Progress, error) {
	i, err := c.Get(ctx, r.Ref)
	if err != nil || i.State != provider.Running {
		return provider.Progress{Done: true}, err // what is off joins when it is switched on
	}
	text, err := c.Console.Console(ctx, r.Ref, 1<<20)
	if err != nil {
		return provider.Progress{}, err
	}
	on := bytes.LastIndex(text, []byte("belay: power on: "+bootMark(r.Digest, config)+"\n"))
	if on < 0 || !bytes.Contains(text[on:], []byte("belay: joined")) {
		return provider.Progress{Message: "the guest has not joined since it was switched on", AfterSeconds: 1}, nil
	}
	return provider.Progress{Done: true}, nil
}

// typed has the calls that look at a config. The others are those of the machines.
type typed struct{ c *core }

func (t typed) Get(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
	return t.c.Get(ctx, ref)
}

func (t typed) List(ctx context.Context, s provider.Scope) ([]provider.Instance, error) {
	return t.c.List(ctx, s)
}

func (t typed) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	return t.c.Delete(ctx, r)
}

func (t typed) Stop(ctx context.Context, ref provider.Ref) (provider.Progress, error) {
	return t.c.Power.Stop(ctx, ref)
}

func (t typed) Reboot(ctx context.Context, ref provider.Ref, id string) (provider.Progress, error) {
	return t.c.Power.Reboot(ctx, ref, id)
}

func (t typed) Console(ctx context.Context, ref provider.Ref, limit int) ([]byte, error) {
	return t.c.Console.Console(ctx, ref, limit)
}

func (t typed) Create(ctx context.Context, r provider.CreateRequest, config Config) (i provider.Instance, err error) {
	if r.Desired, err = t.c.machine(r.Desired, r.Digest, config); err != nil {
		return i, err
	}
	return t.c.Create(ctx, r)
}

func (t typed) Adopt(ctx context.Context, r provider.AdoptRequest, config Config) (i provider.Instance, err error) {
	if r.As.Desired, err = t.c.machine(r.As.Desired, r.As.Digest, config); err != nil {
		return i, err
	}
	return t.c.Adopter.Adopt(ctx, r)
}

func (t typed) Validate(ctx context.Context, d provider.Desired, config Config) (err error) {
	if d, err = t.c.machine(d, "", config); err != nil {
		return err
	}
	return t.c.Validator.Validate(ctx, d)
}

func (t typed) Plan(ctx context.Context, r provider.UpdateRequest, config Config) (p provider.Plan, err error) {
	if r.Desired, err = t.c.machine(r.Desired, r.Digest, config); err != nil {
		return p, err
	}
	return t.c.Planner.Plan(ctx, r)
}

func (t typed) Update(ctx context.Context, r provider.UpdateRequest, config Config) (p provider.Progress, err error) {
	own := r
	if own.Desired, err = t.c.machine(r.Desired, r.Digest, config); err != nil {
		return p, err
	}
	if p, err = t.c.Updater.Update(ctx, own); err != nil || !p.Done {
		return p, err
	}
	return t.c.joined(ctx, r, config)
}
