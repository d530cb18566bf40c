// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/strictjson"
	"github.com/belayproject/belay/machine/provider"
)

// directoryName is where a host keeps its claim, unless the inventory says otherwise.
const directoryName = "/var/lib/belay/machine"

// Options say which hosts there are and how to reach them. Hosts or Inventory is required.
type Options struct {
	// Hosts are those of the pool.
	Hosts []Host
	// Inventory returns them instead, and is asked at each call: see [File].
	Inventory func(ctx context.Context) ([]Host, error)
	// Command is the client; "" is "ssh". It is looked for in PATH.
	Command string
	// Args are further arguments of the client, as "-i" and a file, or "-J" and a host. BatchMode and StrictHostKeyChecking are on, whatever they say.
	Args []string
	// Shell is what runs a script on a host, from its standard input; "" is "sh -s". Users other than root need "sudo -n sh -s".
	Shell string
	// KnownHosts is the file with the keys of the hosts; "" leaves that to the client. A host whose key is not known is Unauthorized.
	KnownHosts string
	// ControlDir is a directory in which the client keeps connections open for a minute, so that a call takes milliseconds; "" is none.
	ControlDir string
	// Timeout is that of one exchange with one host. Zero and less is 30 seconds.
	Timeout time.Duration
}

// A Host is one of the pool.
type Host struct {
	// Name is its identity: lower case letters, digits, dashes and dots. It is part of the ProviderID and stays.
	Name string `json:"name"`
	// Address is where the client connects to: a name or an IP address; "" is Name.
	Address string `json:"address,omitempty"`
	// User logs in; "" leaves that to the client.
	User string `json:"user,omitempty"`
	// Port is that of sshd; 0 leaves it to the client.
	Port int `json:"port,omitempty"`
	// Labels are what configs select hosts by, as "zone".
	Labels map[string]string `json:"labels,omitempty"`
	// Directory is where the host keeps its claim and data; "" is /var/lib/belay/machine. It is absolute, and on a disk.
	Directory string `json:"directory,omitempty"`
}

// File returns an inventory that reads a file with a JSON list of hosts each time.
func File(name string) func(context.Context) ([]Host, error) {
	return func(context.Context) ([]Host, error) {
		list, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var hosts []Host
		if err := strictjson.Decode(list, &hosts); err != nil {
			return nil, fmt.Errorf("inventory %q: %w", name, err)
		}
		return hosts, nil
	}
}

// checked returns hosts with defaults, or what is wrong with them.
func checked(hosts []Host) ([]Host, error) {
	var (
		names  = map[string]bool{}
		places = map[string]string{}
		all    = make([]Host, 0, len(hosts))
	)
	for _, h := range hosts {
		h, err := h.checked()
		if err != nil {
			return nil, err
		}
		place := fmt.Sprintf("%s port %d directory %s", h.Address, h.Port, h.Directory)
		if names[h.Name] || places[place] != "" {
			return nil, fmt.Errorf("host %q: its name or its place is that of another one: want each host once", h.Name)
		}
		names[h.Name], places[place] = true, h.Name
		all = append(all, h)
	}
	return all, nil
}

func (h Host) checked() (Host, error) {
	if h.Address == "" {
		h.Address = h.Name
	}
	if h.Directory == "" {
		h.Directory = directoryName
	}
	for _, label := range strings.Split(h.Name, ".") {
		if provider.CheckToken(label) != nil {
			return h, fmt.Errorf("host %q: its name has other things than lower case letters, digits and dashes between dots", h.Name)
		}
	}
	for field, v := range map[string]string{"address": h.Address, "user": h.User} {
		if strings.HasPrefix(v, "-") || strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return h, fmt.Errorf("host %q: its %s %q begins with a dash or has blanks", h.Name, field, v)
		}
	}
	if !path.IsAbs(h.Directory) || path.Clean(h.Directory) != h.Directory || h.Directory == "/" || strings.ContainsRune(h.Directory, 0) {
		return h, fmt.Errorf("host %q: its directory %q is not absolute and clean, as %q", h.Name, h.Directory, directoryName)
	}
	if h.Port < 0 || h.Port > 65535 {
		return h, fmt.Errorf("host %q: its port is %d: want 1 to 65535, or 0", h.Name, h.Port)
	}
	return h, nil
}

// has reports whether a host has all labels.
func (h Host) has(labels map[string]string) bool {
	for name, want := range labels {
		if got, ok := h.Labels[name]; !ok || got != want {
			return false
		}
	}
	return true
}

func (h Host) data() string { return h.Directory + "/data" }
