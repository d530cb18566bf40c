// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// settings are what the machine was started with: the disk "settings" is a tar with machine.json of package local and the bootstrap Secret. The kernel's
// command line has the provider ID and the disks.
type settings struct {
	Token    string `json:"token"`
	Endpoint string `json:"endpoint"`
	Owner    struct {
		Name string `json:"name"`
	} `json:"owner"`
	Versions struct {
		Kubelet string `json:"kubelet"`
	} `json:"versions"`

	providerID string
	disk       string
	kubeconfig []byte
}

func readSettings() (settings, error) {
	var s settings
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return s, err
	}
	for _, word := range strings.Fields(string(line)) {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "belay.provider-id":
			s.providerID = value
		case "belay.disk":
			s.disk = value
		}
	}
	path, err := device("settings")
	if err != nil {
		return s, err
	}
	f, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer f.Close() // only read
	if err := s.read(f); err != nil {
		return s, fmt.Errorf("reading the settings: %w", err)
	}
	return s, nil
}

func (s *settings) read(r io.Reader) error {
	for files := tar.NewReader(r); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch strings.TrimPrefix(header.Name, "./") {
		case "machine.json":
			err = json.NewDecoder(files).Decode(s)
		case "bootstrap/kubeconfig":
			s.kubeconfig, err = io.ReadAll(files)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", header.Name, err)
		}
	}
}
