// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package kubelet

import (
	"errors"
	"os"
)

// A sandbox is for Linux.
type sandbox struct {
	dir                  string
	cgroupNames, sockets []string
}

var errSystem = errors.New("a kubelet can be kept apart on Linux only")

func canIsolate() error { return errSystem }

func (s *sandbox) prepare() error { return errSystem }

func (s *sandbox) makeCgroups() error { return errSystem }

func (s *sandbox) removeCgroups() error { return nil }

// removeLeftovers does nothing: it is not known here whether a directory is in use.
func removeLeftovers(string, string, func(string) error) {}

func lockDir(dir string) (*os.File, error) { return os.Open(dir) }
