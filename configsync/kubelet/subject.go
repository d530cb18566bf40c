// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// Subject says which kubelet is looked at. Its functions may be called from several goroutines.
type Subject struct {
	// Command is the command line of the kubelet, the program first. A flag is stronger than the config, as for the
	// kubelet.
	Command []string
	// Config returns the config in use as one JSON document, as the kubelet reads it after all its parts are merged; nil
	// while nothing runs. Fields that are not known are passed over. Nil means that only the command line is known.
	Config func() []byte
	// Local returns the config that the node was provisioned with, as JSON. What it and the command line name lies below
	// every config; what only another config names is that config's own choice. Nil means that there is none.
	Local func() []byte
	// PID returns the process ID of the kubelet that runs, 0 if none does. Supervisor.PID of package restart does. Nil
	// means that starts can't be told apart.
	PID func() int
	// StateDir is the directory in which the agent keeps its records. Empty means none.
	StateDir string
}

// The kubelet's own defaults.
const (
	defaultEndpoint = "unix:///run/containerd/containerd.sock"
	defaultRootDir  = "/var/lib/kubelet"
	defaultLogDir   = "/var/log/pods"
	defaultPort     = 10250
)

// settings are the fields of a KubeletConfiguration that say where its parts are.
type settings struct {
	Address                  string `json:"address"`
	Port                     int    `json:"port"`
	EnableServer             *bool  `json:"enableServer"`
	ContainerRuntimeEndpoint string `json:"containerRuntimeEndpoint"`
	PodLogsDir               string `json:"podLogsDir"`
}

// settingsOf reads a document. What can't be read says nothing.
func settingsOf(document func() []byte) (s settings) {
	if document != nil {
		if text := document(); len(text) > 0 && json.Unmarshal(text, &s) != nil {
			return settings{}
		}
	}
	return s
}

// flagValue returns the value of a flag of the kubelet; the last one wins. A kubelet takes "_" in a name for "-".
func (s *Subject) flagValue(name string) (value string, ok bool) {
	for i := 1; i < len(s.Command); i++ {
		arg := s.Command[i]
		if !strings.HasPrefix(arg, "-") {
			continue
		}
		key, given, has := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if strings.ReplaceAll(key, "_", "-") != name {
			continue
		}
		if !has && i+1 < len(s.Command) {
			i++
			given = s.Command[i]
		}
		value, ok = given, true
	}
	return value, ok
}

// runtimeEndpoint returns the address of the container runtime. shared says that every config uses it: the command
// line or the local config names it.
func (s *Subject) runtimeEndpoint() (endpoint string, shared bool) {
	if endpoint, ok := s.flagValue("container-runtime-endpoint"); ok && endpoint != "" {
		return endpoint, true
	}
	used, local := settingsOf(s.Config).ContainerRuntimeEndpoint, settingsOf(s.Local).ContainerRuntimeEndpoint
	switch {
	case used == "":
		return defaultEndpoint, false
	default:
		return used, used == local
	}
}

// servingAddress returns host and port of the kubelet's API; ok is false where the config switches it off.
func (s *Subject) servingAddress() (hostPort string, ok bool) {
	used := settingsOf(s.Config)
	host, port := used.Address, used.Port
	if v, given := s.flagValue("address"); given {
		host = v
	}
	if v, given := s.flagValue("port"); given {
		port, _ = strconv.Atoi(v) // a kubelet with a wrong flag does not start
	}
	if ip, err := netip.ParseAddr(host); err != nil || ip.IsUnspecified() {
		host = "127.0.0.1" // it listens on all addresses, this one too
	}
	if port == 0 {
		port = defaultPort
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), used.EnableServer == nil || *used.EnableServer
}

// writtenDirectories returns those that a kubelet and its agent write to.
func (s *Subject) writtenDirectories() []string {
	root, ok := s.flagValue("root-dir")
	if !ok || root == "" {
		root = defaultRootDir
	}
	logs := settingsOf(s.Local).PodLogsDir
	if logs == "" {
		logs = defaultLogDir
	}
	all := []string{filepath.Clean(root), filepath.Clean(logs)}
	if s.StateDir != "" {
		all = append(all, filepath.Clean(s.StateDir))
	}
	return all
}
