// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodetier

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// containerdConfig keeps the runtime to its own directories. The native snapshotter copies layers, which works on
// every file system, in a container too; restrict_oom_score_adj serves a root that may not lower the score below
// its own; the plugins that are disabled need devices or kernel modules.
const containerdConfig = `version = 2
root = "DIR/root"
state = "DIR/state"
temp = "DIR/temp"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.overlayfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing",
  "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
  address = "SOCKET"

[plugins."io.containerd.internal.v1.opt"]
  path = "DIR/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "IMAGE"
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = "DIR/runc"
        SystemdCgroup = false

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "PLUGINS"
    conf_dir = "CNI"
`

func (t *Tier) startContainerd(ctx context.Context) error {
	bin, err := PluginDir()
	if err != nil {
		return err
	}
	dir := filepath.Join(t.dir, "containerd")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making containerd's directory: %w", err)
	}
	config := strings.NewReplacer(
		"DIR", dir, "SOCKET", t.socket(), "IMAGE", PauseImage, "PLUGINS", bin, "CNI", filepath.Join(t.dir, "cni"),
	).Replace(containerdConfig)
	path := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return fmt.Errorf("writing containerd's configuration: %w", err)
	}
	program, err := exec.LookPath("containerd")
	if err != nil {
		return fmt.Errorf("finding containerd: %w", err)
	}
	t.containerd = t.env.Process("containerd", []string{program, "--config", path}, t.containerdReady)
	return t.containerd.Start(ctx)
}

// containerdReady asks through the same socket as the kubelet will.
func (t *Tier) containerdReady(ctx context.Context) error {
	_, err := t.ctr(ctx, "plugins", "ls")
	return err
}

// importPause gives the runtime the one image it will ever have.
func (t *Tier) importPause(ctx context.Context) error {
	archive := filepath.Join(t.dir, "pause.tar")
	if err := WriteImage(archive, PauseImage, t.programs["pause"]); err != nil {
		return err
	}
	_, err := t.ctr(ctx, "images", "import", "--snapshotter", "native", archive)
	return err
}

func (t *Tier) ctr(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "ctr", append([]string{"--address", t.socket(), "--namespace", "k8s.io"}, args...)...)
	t.env.Mark(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("running ctr %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return out, nil
}
