// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/durable"
)

const mountPoint = "/data"

// disk is what is written on the first disk of the machine. All of it survives a power cut as soon as openDisk has
// returned.
type disk struct {
	machineID  string // made by the first boot
	sentinel   string // the token of the machine that has formatted it
	boots      int    // how often it was mounted by a guest
	kubeconfig []byte // the last that was given
}

// openDisk mounts the disk, and adds what is missing on it.
func openDisk(s settings) (disk, error) {
	var d disk
	path, err := device(s.disk)
	if err != nil {
		return d, err
	}
	if err := os.MkdirAll(mountPoint, 0o755); err != nil {
		return d, err
	}
	if err := unix.Mount(path, mountPoint, "ext4", 0, ""); err != nil {
		return d, fmt.Errorf("mounting disk %q: %w", s.disk, err)
	}
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return d, err
	}
	if d.machineID, err = once("machine-id", hex.EncodeToString(id)); err != nil {
		return d, err
	}
	if d.sentinel, err = once("sentinel", s.Token); err != nil {
		return d, err
	}
	boots, err := once("boots", "0")
	if err != nil {
		return d, err
	}
	if d.boots, err = strconv.Atoi(boots); err != nil {
		return d, fmt.Errorf("counting boots: %w", err)
	}
	d.boots++
	if err := put("boots", []byte(strconv.Itoa(d.boots))); err != nil {
		return d, err
	}
	return d, d.credentials(s)
}

// credentials keeps those that were given: a machine that is started again may be given none.
func (d *disk) credentials(s settings) error {
	if len(s.kubeconfig) > 0 {
		d.kubeconfig = s.kubeconfig
		return put("kubeconfig", s.kubeconfig)
	}
	text, err := once("kubeconfig", "")
	d.kubeconfig = []byte(text)
	return err
}

// once returns the content of a file, which is written if it is not there.
func once(name, text string) (string, error) {
	data, err := os.ReadFile(filepath.Join(mountPoint, name))
	if errors.Is(err, fs.ErrNotExist) {
		return text, put(name, []byte(text))
	}
	return strings.TrimSpace(string(data)), err
}

// put replaces a file as a whole; it is on the disk when put returns.
func put(name string, data []byte) error {
	return durable.ReplaceFile(durable.OS{}, filepath.Join(mountPoint, name), data, 0o600)
}
