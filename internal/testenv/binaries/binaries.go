// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Name says which program is wanted.
type Name string

// The programs that can be built. Reaper and Pause are commands of this module, the others are the real ones. OldKubelet is a kubelet of an older
// minor release than the rest, and Containerd, with its shim, another one than Debian's: for tests that take a machine up and down.
const (
	Etcd              Name = "etcd"
	APIServer         Name = "kube-apiserver"
	ControllerManager Name = "kube-controller-manager"
	Scheduler         Name = "kube-scheduler"
	Kubelet           Name = "kubelet"
	OldKubelet        Name = "old-kubelet"
	Containerd        Name = "containerd"
	ContainerdShim    Name = "containerd-shim-runc-v2"
	Kwok              Name = "kwok"
	Reaper            Name = "reaper"
	Pause             Name = "pause"
	Guest             Name = "guest"
)

// All lists every program, those that most tests wait for first.
func All() []Name {
	return []Name{Reaper, Etcd, APIServer, Kubelet, ControllerManager, Scheduler, Kwok, Pause, OldKubelet, Containerd, ContainerdShim, Guest}
}

// Set maps each program to its absolute path.
type Set map[Name]string

// KwokStages returns the file that tells kwok how nodes and pods behave, for its flag --config. It lies beside
// the kwok program; the set must hold Kwok.
func (s Set) KwokStages() string { return filepath.Join(filepath.Dir(s[Kwok]), stagesFile) }

// Ensure returns the paths of the named programs and builds those that are missing. The first build of all takes
// several minutes: lines on progress say what is done and why it takes long. An error names the program and holds
// the end of the compiler's output. A call that is cancelled or killed can be repeated.
func Ensure(ctx context.Context, progress io.Writer, names ...Name) (Set, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the cache directory: %w", err)
	}
	b := builder{root: root, cache: filepath.Join(cache, "belay", "controlplane"), progress: progress}
	set := Set{}
	for _, name := range names {
		path, err := b.path(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("providing %q: %w", name, err)
		}
		set[name] = path
	}
	return set, nil
}

// builder holds what one call of Ensure needs.
type builder struct {
	root     string // directory of the main module
	cache    string // parent of the directories that are named by key
	progress io.Writer
}

func (b builder) path(ctx context.Context, name Name) (string, error) {
	if path, err := fromAssets(name); path != "" || err != nil {
		return path, err
	}
	r, err := b.recipe(name)
	if err != nil {
		return "", err
	}
	return b.ensure(ctx, name, r)
}

// ensure returns the path of the program that r makes and builds it where it is missing.
func (b builder) ensure(ctx context.Context, name Name, r recipe) (string, error) {
	dir := filepath.Join(b.cache, r.key)
	path := filepath.Join(dir, string(name))
	if isFile(path) {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the cache: %w", err)
	}
	unlock, err := b.lock(ctx, filepath.Join(dir, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if isFile(path) { // another process built it while this one waited
		return path, nil
	}
	return path, b.build(ctx, r, path)
}

// fromAssets looks into KUBEBUILDER_ASSETS, which other projects' tests use too. It supplies the two servers that
// every such directory has, and no others: the rest must be of one release.
func fromAssets(name Name) (string, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" || (name != Etcd && name != APIServer) {
		return "", nil
	}
	path, err := filepath.Abs(filepath.Join(dir, string(name)))
	if err != nil {
		return "", fmt.Errorf("resolving KUBEBUILDER_ASSETS %q: %w", dir, err)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("looking into KUBEBUILDER_ASSETS: %w", err)
	}
	return path, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
