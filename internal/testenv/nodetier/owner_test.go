// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodetier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/nodetier"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/internal/tier"
)

// ownerVariable makes the test binary, started again, own a node and wait to be killed.
const ownerVariable = "BELAY_NODETIER_OWNER"

// own runs a node with a pod, prints the identifier and the directory, and waits.
func own() {
	ctx := context.Background()
	env, err := testenv.New(ctx, testenv.Options{})
	if err == nil {
		var tier *nodetier.Tier
		if tier, err = nodetier.New(ctx, env); err == nil {
			_, err = runPod(ctx, env, tier)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(env.ID(), env.Dir())
	io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// traces lists what still belongs to a node: processes, mounts, cgroups, network interfaces of pods, directories,
// and files at the fixed places of the machine.
func traces(id, dir string) []string {
	var found []string
	for _, file := range []string{"/proc/self/mountinfo", "/proc/net/route"} {
		data, _ := os.ReadFile(file)
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, dir) || strings.HasPrefix(line, "veth") {
				found = append(found, strings.TrimSpace(line))
			}
		}
	}
	for _, pattern := range []string{
		dir, "/sys/fs/cgroup/*" + id, "/sys/fs/cgroup/*/*" + id, "/run/containerd/s/*", "/var/lib/cni/results/*" + id + "*",
		"/var/log/containers/*", "/run/netns/cni-*",
	} {
		paths, _ := filepath.Glob(pattern)
		found = append(found, paths...)
	}
	return append(found, testproc.Naming(id)...)
}

func gone(id, dir string) error {
	if found := traces(id, dir); len(found) > 0 {
		return errors.New(strings.Join(found, "\n"))
	}
	return nil
}

// TestNodeRunsAPodAndLeavesNothing starts a real kubelet beside a real API server, waits until the node is Ready
// and a pod runs, and ends it all in order.
func TestNodeRunsAPodAndLeavesNothing(t *testing.T) {
	tier.System(t, tier.Root, tier.Kubelet)
	nodetier.Require(t)
	env := testenv.Start(t, testenv.Options{})
	before := settingsAtRest(t)
	tier := nodetier.Start(t, env)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := runPod(ctx, env, tier); err != nil {
		t.Fatal(err)
	}
	seesNode(t, env.ID(), env.Dir())
	if err := env.Close(); err != nil {
		t.Fatal(err)
	}
	holdMachine(t)
	if err := gone(env.ID(), env.Dir()); err != nil {
		t.Errorf("after Close the machine still has:\n%v", err)
	}
	if after := settings(t); after != before {
		t.Errorf("after Close the machine's settings and places are\n%s\nwant\n%s", after, before)
	}
}

// TestKilledOwnerLeavesNoNode is the same promise when nothing of the owner's own code runs any more.
func TestKilledOwnerLeavesNoNode(t *testing.T) {
	tier.System(t, tier.Root, tier.Kubelet)
	nodetier.Require(t)
	before := settingsAtRest(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), ownerVariable+"=1")
	cmd.Stderr = os.Stderr
	_, line := testproc.Start(t, cmd)
	id, dir, ok := strings.Cut(line, " ")
	if !ok {
		t.Fatalf("the owner printed %q, want an identifier and a directory", line)
	}
	seesNode(t, id, dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	holdMachine(t)
	if err := testproc.Poll(30*time.Second, func() error { return gone(id, dir) }); err != nil {
		t.Errorf("30 s after the owner was killed the machine still has:\n%v", err)
	}
	if after := settings(t); after != before {
		t.Errorf("after the kill the machine's settings and places are\n%s\nwant\n%s", after, before)
	}
}

// seesNode makes sure that the test would notice what is left: each kind of trace is there while the node runs.
func seesNode(t *testing.T, id, dir string) {
	t.Helper()
	found := strings.Join(traces(id, dir), "\n")
	for _, want := range []string{
		"kubelet", "containerd-shim", " pause", "kube-apiserver", dir + "/node ", "veth", "/sys/fs/cgroup/",
		"/run/containerd/s/", "/var/lib/cni/results/", "/var/log/containers/",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("while the node runs no trace holds %q; traces:\n%s", want, found)
		}
	}
}

// holdMachine keeps other tests' nodes from starting until this test ends, so that what it finds is not theirs.
func holdMachine(t *testing.T) {
	t.Helper()
	err := testproc.Poll(10*time.Minute, func() error {
		held, err := net.Listen("unix", "@belay-testenv-node-tier")
		if err == nil {
			t.Cleanup(func() { held.Close() })
		}
		return err
	})
	if err != nil {
		t.Fatalf("waiting for another node tier to end: %v", err)
	}
}

// settingsAtRest is the state while no node runs.
func settingsAtRest(t *testing.T) (state string) {
	t.Run("at rest", func(t *testing.T) {
		holdMachine(t)
		state = settings(t)
	})
	return state
}

// settings describes the state of the machine that a kubelet changes.
func settings(t *testing.T) string {
	t.Helper()
	var state strings.Builder
	for _, name := range []string{"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward"} {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		fmt.Fprintf(&state, "%s=%s %v\n", name, strings.TrimSpace(string(value)), err)
	}
	for _, dir := range []string{
		"/var/lib/kubelet", "/var/log/containers", "/var/log/pods", "/var/lib/cni", "/run/containerd", "/opt/containerd",
		"/var/lib/containerd", "/run/runc", "/etc/cni", "/var/lib/calico",
	} {
		_, err := os.Stat(dir)
		fmt.Fprintf(&state, "%s: there=%t\n", dir, err == nil)
	}
	return state.String()
}
