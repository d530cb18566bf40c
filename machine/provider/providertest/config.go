// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// The version and kind of a [Config].
const (
	APIVersion = "fake.belay.dev/v1"
	KindName   = "FakeConfig"
)

// Config is the provider's part of a machine. With kind and version alone it is a small machine with one disk in zone "a" that runs at once and
// joins.
type Config struct {
	provider.Kind
	// Size is "small" (2 CPUs, 4Gi), "medium" (4, 16Gi) or "large" (8, 32Gi). Empty is small.
	Size string `json:"size,omitempty"`
	// Zone is where the instance is made, a name of lower case letters, digits and dashes. Empty is "a".
	Zone string `json:"zone,omitempty"`
	// Image is what it boots. Empty is "base".
	Image string `json:"image,omitempty"`
	// Disks are those of the instance. Empty is one of the name "root" with 10 GiB.
	Disks []DiskConfig `json:"disks,omitempty"`
	// Group is the group that the instance counts in, once a Resize has named it; empty is none.
	Group string `json:"group,omitempty"`
	// StartMilliseconds is how long the instance is Pending, at each boot.
	StartMilliseconds int64 `json:"startMilliseconds,omitempty"`
	// StopMilliseconds is how long it takes to stop.
	StopMilliseconds int64 `json:"stopMilliseconds,omitempty"`
	// ReleaseMilliseconds is how long a Delete takes after the stop.
	ReleaseMilliseconds int64 `json:"releaseMilliseconds,omitempty"`
	// UpdateMilliseconds is how long an update in place takes.
	UpdateMilliseconds int64 `json:"updateMilliseconds,omitempty"`
	// Updates says how a change is made, by what changes: "size", "zone", "image", "disks", "group", "kubelet", "runtime", "other", "roles" or
	// "node". What isn't there is as follows: kubelet, other, roles and node InPlace; image, runtime, zone, disks and group Replace; size
	// Unsupported. A zone and disks can't be changed in place.
	Updates map[string]provider.Method `json:"updates,omitempty"`
	// Joins is false for an instance that runs and whose Node never comes. It is for whoever makes Nodes, by [Host.Joins]; nil is true.
	Joins *bool `json:"joins,omitempty"`
}

// A DiskConfig is a disk of a [Config].
type DiskConfig struct {
	// Name is lower case letters, digits and dashes, at most 20.
	Name string `json:"name"`
	// GiB is its size, 1 to 65536.
	GiB int64 `json:"gib"`
}

const (
	maxDisks   = 16
	maxGiB     = 1 << 16
	maxLatency = int64(time.Hour / time.Millisecond)
)

// sizes are what Nodes have, by the size of a Config.
var sizes = map[string]map[string]string{
	"small":  {"cpu": "2", "memory": "4Gi", "pods": "110"},
	"medium": {"cpu": "4", "memory": "16Gi", "pods": "110"},
	"large":  {"cpu": "8", "memory": "32Gi", "pods": "110"},
}

// usual is how changes are made that a Config does not speak of.
var usual = map[string]provider.Method{
	"kubelet": provider.InPlace, "other": provider.InPlace, "roles": provider.InPlace, "node": provider.InPlace,
	"image": provider.Replace, "runtime": provider.Replace, "zone": provider.Replace, "disks": provider.Replace, "group": provider.Replace,
	"size": provider.Unsupported,
}

// Default writes into empty fields what they stand for.
func (c *Config) Default() {
	if c.Size == "" {
		c.Size = "small"
	}
	if c.Zone == "" {
		c.Zone = "a"
	}
	if c.Image == "" {
		c.Image = "base"
	}
	if len(c.Disks) == 0 {
		c.Disks = []DiskConfig{{Name: "root", GiB: 10}}
	}
}

// Validate returns an error that names the first field that is wrong. Empty ones are: see [Config.Default].
func (c *Config) Validate() error {
	if sizes[c.Size] == nil {
		return fmt.Errorf("size %q is unknown: want one of %q", c.Size, slices.Sorted(maps.Keys(sizes)))
	}
	if err := provider.CheckToken(c.Zone); err != nil {
		return fmt.Errorf("zone %.80q: want up to 63 lower case letters, digits and dashes", c.Zone)
	}
	if c.Group != "" && !isName(c.Group) {
		return fmt.Errorf("group %.80q: want up to 200 lower case letters, digits, dashes and dots", c.Group)
	}
	for _, f := range []struct {
		name string
		ms   int64
	}{
		{"startMilliseconds", c.StartMilliseconds},
		{"stopMilliseconds", c.StopMilliseconds},
		{"releaseMilliseconds", c.ReleaseMilliseconds},
		{"updateMilliseconds", c.UpdateMilliseconds},
	} {
		if f.ms < 0 || f.ms > maxLatency {
			return fmt.Errorf("%s is %d: want 0 to %d", f.name, f.ms, maxLatency)
		}
	}
	if err := checkDisks(c.Disks); err != nil {
		return err
	}
	return checkUpdates(c.Updates)
}

func checkDisks(disks []DiskConfig) error {
	if len(disks) > maxDisks {
		return fmt.Errorf("disks has %d entries: want at most %d", len(disks), maxDisks)
	}
	seen := map[string]bool{}
	for i, d := range disks {
		if len(d.Name) > 20 || provider.CheckToken(d.Name) != nil {
			return fmt.Errorf("disks[%d].name %.80q: want 1 to 20 lower case letters, digits and dashes", i, d.Name)
		}
		if seen[d.Name] {
			return fmt.Errorf("disks[%d].name %q is there twice: want another one", i, d.Name)
		}
		if seen[d.Name] = true; d.GiB < 1 || d.GiB > maxGiB {
			return fmt.Errorf("disks[%d].gib is %d: want 1 to %d", i, d.GiB, maxGiB)
		}
	}
	return nil
}

func checkUpdates(updates map[string]provider.Method) error {
	for _, what := range slices.Sorted(maps.Keys(updates)) {
		how := updates[what]
		switch {
		case usual[what] == "":
			return fmt.Errorf("updates[%.80q] is unknown: want one of %q", what, slices.Sorted(maps.Keys(usual)))
		case how != provider.InPlace && how != provider.Replace && how != provider.Unsupported:
			return fmt.Errorf("updates[%q] is %.80q: want InPlace, Replace or Unsupported", what, how)
		case how == provider.InPlace && (what == "zone" || what == "disks"):
			return fmt.Errorf("updates[%q] is InPlace: want Replace or Unsupported, as that can't be done here", what)
		}
	}
	return nil
}

// method is how a change is made.
func (c Config) method(what string) provider.Method {
	if how := c.Updates[what]; how != "" {
		return how
	}
	return usual[what]
}

func (c Config) joins() bool { return c.Joins == nil || *c.Joins }

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// isName reports whether a text can name an object of the API, and a file.
func isName(s string) bool {
	return s != "" && len(s) <= 200 && s[0] != '.' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") == ""
}

// complete defaults and checks a config that was sent.
func (c *Config) complete() error {
	c.Default()
	if err := c.Validate(); err != nil {
		return invalid("config is not valid: %w", err)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return provider.Errorf(provider.InvalidConfig, format, args...)
}
