// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machineqemu

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/machine/provider"
)

// TestConfigs shows what is refused before anything is made, by the name of the field.
func TestConfigs(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(c *Config){
		"":                                  func(*Config) {},
		"kernel: it is empty":               func(c *Config) { c.Kernel = "" },
		"memoryMiB: 64 is not between":      func(c *Config) { c.MemoryMiB = 64 },
		"diskMiB: 1 is not between":         func(c *Config) { c.DiskMiB = 1 },
		"disks[1]: \"a\" is there twice":    func(c *Config) { c.Disks = []string{"a", "a"} },
		"disks[0]: \"a,b\" is no name":      func(c *Config) { c.Disks = []string{"a,b"} },
		"disks[0]: \"settings\" is no name": func(c *Config) { c.Disks = []string{"settings"} },
		"disks: there are 9":                func(c *Config) { c.Disks = strings.Split("a b c d e f g h i", " ") },
	} {
		c := Config{Kernel: "6.1.0-1"}
		c.Default()
		change(&c)
		err := c.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Validate(%+v): got error %v, want %q", c, err, want)
		}
	}
}

// TestUnknownKernel shows that a kernel that is not there is a bad config, not a machine that can't start.
func TestUnknownKernel(t *testing.T) {
	t.Parallel()
	c := core{images: map[string]Image{"6.1.0-1": {}, "6.2.0-1": {}}}
	_, err := c.machine(provider.Desired{}, "", Config{Kernel: "5.0"})
	if provider.ClassOf(err) != provider.InvalidConfig || !strings.Contains(err.Error(), `"6.1.0-1" "6.2.0-1"`) {
		t.Errorf("got error %v, want %s with the kernels that there are", err, provider.InvalidConfig)
	}
}

// TestReleasesAreOrdered shows that numbers are compared as numbers.
func TestReleasesAreOrdered(t *testing.T) {
	t.Parallel()
	want := []string{"6.1.0-9-cloud-amd64", "6.1.0-10-cloud-amd64", "6.12.9+deb12-cloud-amd64", "6.12.74+deb12-cloud-amd64", "10.0.0-1-cloud-amd64"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, compareReleases)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestArchive has another program read what the kernel is to unpack.
func TestArchive(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("cpio")
	if err != nil {
		program, err = exec.LookPath("bsdtar")
	}
	var c cpio
	c.add("dev", directory|0o755, 0, nil)
	c.add("dev/console", device|0o600, 5<<8|1, nil)
	c.add("init", regular|0o755, 0, []byte("hello"))
	c.add("TRAILER!!!", 0, 0, nil)
	if n := c.buffer.Len(); n%4 != 0 || !bytes.HasPrefix(c.buffer.Bytes(), []byte("070701")) {
		t.Errorf("the archive has %d bytes and begins with %.6q", n, c.buffer.Bytes())
	}
	if err != nil {
		return // kernels read it in the other tests
	}
	cmd := exec.Command(program, "-t")
	if filepath.Base(program) == "bsdtar" {
		cmd.Args = append(cmd.Args, "-f", "-")
	}
	cmd.Stdin = &c.buffer
	if out, err := cmd.Output(); err != nil || string(out) != "dev\ndev/console\ninit\n" {
		t.Errorf("%s lists %q, %v", program, out, err)
	}
}
