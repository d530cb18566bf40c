// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machinenode_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testenv/nodetier"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// traces lists what belongs to a machine: processes, mounts in whatever mount namespace, cgroups, interfaces of pods, and files.
func (s *stage) traces(token string) []string {
	found := testproc.Naming(token)
	tables, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, table := range tables {
		data, _ := os.ReadFile(table) // it may have ended
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, token) {
				found = append(found, "mount "+strings.TrimSpace(line))
			}
		}
	}
	cgroups, err := nodetier.Cgroups(s.words["CGROUP"])
	found = append(found, cgroups...)
	interfaces, err2 := net.Interfaces()
	for _, i := range interfaces {
		if strings.HasPrefix(i.Name, "veth") {
			found = append(found, "interface "+i.Name)
		}
	}
	files, err3 := filepath.Glob(filepath.Join(s.root, "machines", "*"))
	if err := errors.Join(err, err2, err3); err != nil {
		found = append(found, err.Error())
	}
	return append(found, files...)
}

// leavesTraces makes sure that the test would notice what is left: each kind is there while the machine runs.
func (s *stage) leavesTraces(m *v1alpha1.Machine) {
	s.t.Helper()
	found := strings.Join(s.traces(m.Status.Token), "\n")
	for _, want := range []string{"kubelet", "containerd", "containerd-shim", "mount ", "/sys/fs/cgroup/", "interface veth", filepath.Join(s.root, "machines")} {
		if !strings.Contains(found, want) {
			s.t.Errorf("while the machine runs no trace has %q; traces:\n%s", want, found)
		}
	}
}

// nothingLeft looks for what a machine that is gone has left.
func (s *stage) nothingLeft(m *v1alpha1.Machine) {
	s.t.Helper()
	// The kernel takes a pod's interface away a moment after its last process.
	if err := testproc.Poll(10*time.Second, func() error {
		if found := s.traces(m.Status.Token); len(found) > 0 {
			return errors.New(strings.Join(found, "\n"))
		}
		return nil
	}); err != nil {
		s.t.Errorf("R-MA-02: of the machine is left:\n%v", err)
	}
	if after := places(s.t); after != s.before {
		s.t.Errorf("R-MA-02: the host has\n%swant\n%s", after, s.before)
	}
}

// places says which directories there are that kubelets, runtimes and plugins use, where a machine has none of its own.
func places(t *testing.T) string {
	t.Helper()
	var state strings.Builder
	for _, dir := range []string{
		"/var/lib/kubelet", "/var/log/containers", "/var/log/pods", "/var/lib/cni", "/run/containerd", "/run/runc", "/run/netns", "/run/machine", "/run/nri",
		"/run/cdi", "/opt/nri", "/opt/containerd", "/var/lib/containerd", "/var/lib/opt", "/etc/cni/net.d", "/etc/nri", "/etc/cdi",
	} {
		_, err := os.Stat(dir)
		fmt.Fprintf(&state, "%s: there=%t\n", dir, err == nil)
	}
	return state.String()
}
