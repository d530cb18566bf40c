// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machineqemu

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// MakeImage writes the initial file system of a kernel into a directory, and returns both as an image: the guest as the first process, and the kernel's modules.
func MakeImage(k Kernel, guest, dir string) (Image, error) {
	var c cpio
	c.add("dev", directory|0o755, 0, nil)
	c.add("dev/console", device|0o600, 5<<8|1, nil) // what the first process prints goes there
	c.add("modules", directory|0o755, 0, nil)
	var order []string
	for _, path := range k.Modules {
		data, err := os.ReadFile(path)
		if err != nil {
			return Image{}, fmt.Errorf("image of kernel %q: %w", k.Release, err)
		}
		c.add("modules/"+filepath.Base(path), regular|0o644, 0, data)
		order = append(order, filepath.Base(path))
	}
	c.add("modules/order", regular|0o644, 0, []byte(strings.Join(order, "\n")))
	program, err := os.ReadFile(guest)
	if err != nil {
		return Image{}, fmt.Errorf("image of kernel %q: %w", k.Release, err)
	}
	c.add("init", regular|0o755, 0, program)
	c.add("TRAILER!!!", 0, 0, nil)
	i := Image{Kernel: k.Image, Initrd: filepath.Join(dir, k.Release+".cpio")}
	return i, os.WriteFile(i.Initrd, c.buffer.Bytes(), 0o644)
}

// Types of files, as in st_mode.
const (
	regular   = 0o100000
	directory = 0o040000
	device    = 0o020000 // of characters
)

// A cpio is an archive in the format that kernels unpack: "newc".
type cpio struct {
	buffer bytes.Buffer
	serial int
}

func (c *cpio) add(name string, mode, number int, data []byte) {
	c.serial++
	c.buffer.WriteString("070701")
	for _, field := range []int{c.serial, mode, 0, 0, 1, 0, len(data), 0, 0, number >> 8, number & 0xff, len(name) + 1, 0} {
		fmt.Fprintf(&c.buffer, "%08x", field)
	}
	c.buffer.WriteString(name)
	c.buffer.WriteByte(0)
	c.pad()
	c.buffer.Write(data)
	c.pad()
}

// pad ends at a multiple of four bytes.
func (c *cpio) pad() {
	for c.buffer.Len()%4 != 0 {
		c.buffer.WriteByte(0)
	}
}
