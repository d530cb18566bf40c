// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machineqemu

import (
	"fmt"
	"slices"

	"github.com/belayproject/belay/machine/provider"
)

// APIVersion and KindName are those of a [Config].
const (
	APIVersion = "qemu.belay.dev/v1"
	KindName   = "QemuConfig"
)

// Config is what a machine of this provider is made of.
type Config struct {
	provider.Kind
	// Kernel is the name of an image, a release as uname says it.
	Kernel string `json:"kernel"`
	// MemoryMiB is 128 to 4096; 0 is 256.
	MemoryMiB int64 `json:"memoryMiB,omitempty"`
	// Disks are names; without one there is "data". The guest mounts the first.
	Disks []string `json:"disks,omitempty"`
	// DiskMiB is the size of disks that are made, 16 to 4096; 0 is 64.
	DiskMiB int64 `json:"diskMiB,omitempty"`
}

// Limits of a config.
const (
	minMemory, maxMemory = 128, 4096
	minDisk, maxDisk     = 16, 4096
	maxDisks             = 8
	maxSerial            = 20 // bytes, of virtio
	settingsDisk         = "settings"
)

// Default fills in what was left open.
func (c *Config) Default() {
	if c.MemoryMiB == 0 {
		c.MemoryMiB = 256
	}
	if len(c.Disks) == 0 {
		c.Disks = []string{"data"}
	}
	if c.DiskMiB == 0 {
		c.DiskMiB = 64
	}
}

// Validate returns an error that names the first field that can't be. Defaults are filled in before.
func (c *Config) Validate() error {
	switch {
	case c.Kernel == "":
		return fmt.Errorf("kernel: it is empty: want the name of an image, as \"6.1.0-1-cloud-amd64\"")
	case c.MemoryMiB < minMemory || c.MemoryMiB > maxMemory:
		return fmt.Errorf("memoryMiB: %d is not between %d and %d", c.MemoryMiB, minMemory, maxMemory)
	case c.DiskMiB < minDisk || c.DiskMiB > maxDisk:
		return fmt.Errorf("diskMiB: %d is not between %d and %d", c.DiskMiB, minDisk, maxDisk)
	case len(c.Disks) > maxDisks:
		return fmt.Errorf("disks: there are %d: want at most %d", len(c.Disks), maxDisks)
	}
	for i, name := range c.Disks {
		switch {
		case provider.CheckToken(name) != nil || len(name) > maxSerial || name == settingsDisk:
			return fmt.Errorf("disks[%d]: %q is no name: want lower case letters, digits and dashes, at most %d, and not %q", i, name, maxSerial, settingsDisk)
		case slices.Contains(c.Disks[:i], name):
			return fmt.Errorf("disks[%d]: %q is there twice", i, name)
		}
	}
	return nil
}
