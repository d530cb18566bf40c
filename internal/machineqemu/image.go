// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machineqemu

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// MakeImage returns an image of a kernel, with the guest as the first process. Its initial file system lies beside the kernel in the cache, named by its digest, and is
// written where it is not there.
func MakeImage(k Kernel, guest string) (Image, error) {
	archive, err := initialFiles(k, guest)
	if err != nil {
		return Image{}, fmt.Errorf("image of kernel %q: %w", k.Release, err)
	}
	sum := sha256.Sum256(archive)
	i := Image{Kernel: k.Image, Initrd: filepath.Join(filepath.Dir(k.Image), fmt.Sprintf("initrd-%x.cpio", sum[:8]))}
	if _, err := os.Stat(i.Initrd); err == nil {
		return i, nil
	}
	f, err := os.CreateTemp(filepath.Dir(i.Initrd), ".initrd-")
	if err != nil {
		return Image{}, fmt.Errorf("image of kernel %q: %w", k.Release, err)
	}
	_, err = f.Write(archive)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), i.Initrd)
	}
	return i, err
}

// initialFiles is what the kernel unpacks.
func initialFiles(k Kernel, guest string) ([]byte, error) {
	var c cpio
	c.add("dev", directory|0o755, 0, nil)
	c.add("dev/console", device|0o600, 5<<8|1, nil) // what the first process prints goes there
	c.add("modules", directory|0o755, 0, nil)
	var order []string
	for _, path := range k.Modules {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		c.add("modules/"+filepath.Base(path), regular|0o644, 0, data)
		order = append(order, filepath.Base(path))
	}
	c.add("modules/order", regular|0o644, 0, []byte(strings.Join(order, "\n")))
	program, err := os.ReadFile(guest)
	if err != nil {
		return nil, err
	}
	c.add("init", regular|0o755, 0, program)
	c.add("TRAILER!!!", 0, 0, nil)
	return c.buffer.Bytes(), nil
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
