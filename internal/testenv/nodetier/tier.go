// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodetier

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/binaries"
)

// PauseImage is the one image that the runtime has: it waits until it is told to end. Pods must not pull it.
const PauseImage = "belay.test/pause:1"

// startTimeout bounds the start of the runtime and the import of the image.
const startTimeout = 60 * time.Second

// Tier is a running container runtime. Its methods may be called concurrently.
type Tier struct {
	env        *testenv.Env
	dir        string // beneath the control plane's
	programs   binaries.Set
	containerd *testenv.Process
	cgroup     string // absolute name within each hierarchy, parent of all pods' cgroups
}

// New starts containerd beside the control plane and gives it the pause image. It waits, until ctx ends, while
// another tier runs on this machine. There is no Close: it ends with env.
func New(ctx context.Context, env *testenv.Env) (*Tier, error) {
	if err := Supported(); err != nil {
		return nil, err
	}
	programs, err := binaries.Ensure(ctx, os.Stderr, binaries.Kubelet, binaries.Pause)
	if err != nil {
		return nil, err
	}
	if err := Reserve(ctx, env); err != nil {
		return nil, err
	}
	t := &Tier{env: env, dir: filepath.Join(env.Dir(), "node"), programs: programs, cgroup: "/belay-" + env.ID()}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, step := range []func(context.Context) error{
		t.makeCgroup, t.makeMount, t.writeNetwork, t.startContainerd, t.importPause,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Containerd returns the runtime's process, to be killed or frozen by a test.
func (t *Tier) Containerd() *testenv.Process { return t.containerd }

// Endpoint returns the runtime's address for KubeletConfiguration.containerRuntimeEndpoint.
func (t *Tier) Endpoint() string { return "unix://" + t.socket() }

// KubeletProgram returns the path of the kubelet.
func (t *Tier) KubeletProgram() string { return t.programs[binaries.Kubelet] }

func (t *Tier) socket() string { return filepath.Join(t.dir, "containerd.sock") }

// makeMount makes the tier's directory a mount of its own with shared propagation: the kubelet mounts volumes
// beneath it that the runtime must see, whatever the machine does with its root.
func (t *Tier) makeMount(context.Context) error {
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return fmt.Errorf("making the tier's directory: %w", err)
	}
	if err := bindShared(t.dir); err != nil {
		return fmt.Errorf("mounting the tier's directory: %w", err)
	}
	return nil
}

// writeNetwork configures one network for all pods: a pair of virtual interfaces for each, which the kernel
// removes with the pod's name space, so that no bridge stays. The network's name lets the reaper find what the CNI
// library keeps about it.
func (t *Tier) writeNetwork(context.Context) error {
	dir := filepath.Join(t.dir, "cni")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the network's directory: %w", err)
	}
	config := fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": "belay-%s",
  "plugins": [{
    "type": "ptp",
    "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": %q}]]}
  }]
}
`, t.env.ID(), filepath.Join(t.dir, "ipam"), podSubnet)
	if err := os.WriteFile(filepath.Join(dir, "belay.conflist"), []byte(config), 0o600); err != nil {
		return fmt.Errorf("writing the network: %w", err)
	}
	return nil
}

// podSubnet is where pods get their addresses: the range for documentation, which no real network uses.
const podSubnet = "198.51.100.0/24"
