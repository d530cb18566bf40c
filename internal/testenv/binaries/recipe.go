// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// stagesFile is the name under which kwok's stages lie beside it.
const stagesFile = "kwok-stages.yaml"

// recipe says how one program is built.
type recipe struct {
	dir     string   // where "go build" runs
	pkg     string   // main package
	ldflags string   // linker flags; -s -w, since nobody debugs these programs
	key     string   // changes when anything above or below changes
	inputs  []string // files whose content makes the key
	note    string   // why a build takes long, empty where it does not
}

// recipe returns how name is built from the sources as they are now.
func (b builder) recipe(name Name) (recipe, error) {
	r, err := b.describe(name)
	if err != nil {
		return recipe{}, err
	}
	r.key, err = r.sum()
	return r, err
}

func (b builder) describe(name Name) (recipe, error) {
	servers := filepath.Join(b.root, "internal", "controlplane")
	switch name {
	case Etcd:
		return pinned(servers, "go.etcd.io/etcd/server/v3", "-s -w"), nil
	case APIServer, ControllerManager, Scheduler, Kubelet, OldKubelet:
		dir, err := kubernetesDir(b.root, name)
		if err != nil {
			return recipe{}, err
		}
		ldflags, err := stamp(filepath.Join(dir, "go.mod"))
		return pinned(dir, "k8s.io/kubernetes/cmd/"+strings.TrimPrefix(string(name), "old-"), ldflags), err
	case Containerd, ContainerdShim:
		dir := filepath.Join(servers, "containerd")
		m, err := pinnedRelease(filepath.Join(dir, "go.mod"), containerdModule)
		if err != nil {
			return recipe{}, err
		}
		return pinned(dir, containerdModule+"/cmd/"+string(name), "-s -w -X "+containerdModule+"/version.Version="+m[1]), nil
	case Kwok:
		return pinned(filepath.Join(servers, "kwok"), "sigs.k8s.io/kwok/cmd/kwok", "-s -w"), nil
	case Reaper, Pause:
		return b.own(name)
	case Guest: // it has modules of others, which the module pins
		r, err := b.own(name)
		r.inputs = append(r.inputs, filepath.Join(b.root, "go.mod"), filepath.Join(b.root, "go.sum"),
			filepath.Join(b.root, "internal", "testenv", "kubeconfig", "kubeconfig.go"))
		return r, err
	}
	return recipe{}, fmt.Errorf("no program has this name")
}

// ReleaseVariable names the environment variable that selects the minor release of the Kubernetes servers, such as
// "1.35". Unset, they are of the newest release; the directories of internal/controlplane say which there are.
const ReleaseVariable = "BELAY_KUBERNETES"

// ServersVariable names the environment variable that turns real servers off: with "none", each test that needs a
// control plane is skipped and says so. The rest of a package, such as a conformance suite on its fake, runs.
const ServersVariable = "BELAY_SERVERS"

// previousRelease is the directory of the minor release before the default one.
const previousRelease = "v1.36"

// kubernetesDir returns the directory of the module that pins a Kubernetes program.
func kubernetesDir(root string, name Name) (string, error) {
	servers := filepath.Join(root, "internal", "controlplane")
	selected := os.Getenv(ReleaseVariable)
	switch {
	case name == OldKubelet:
		return filepath.Join(servers, previousRelease), nil
	case name == Kubelet || selected == "":
		return servers, nil
	}
	dir := filepath.Join(servers, "v"+selected)
	if isFile(filepath.Join(dir, "go.mod")) {
		return dir, nil
	}
	newest, err := pinnedRelease(filepath.Join(servers, "go.mod"), kubernetesModule)
	if err != nil {
		return "", err
	}
	if selected == newest[2]+"."+newest[3] {
		return servers, nil
	}
	return "", fmt.Errorf("%s=%q: want a minor release such as %q, one that %q pins", ReleaseVariable, selected, "1.35", servers)
}

// pinned describes a main of another project, whose sources the module sums in dir fix.
func pinned(dir, pkg, ldflags string) recipe {
	return recipe{
		dir: dir, pkg: pkg, ldflags: ldflags,
		inputs: []string{filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum")},
		note:   "compiled from its module, minutes the first time on a machine, kept after that",
	}
}

// own describes a command of this module that imports only the standard library, so that its own files are all
// that its build depends on.
func (b builder) own(name Name) (recipe, error) {
	dir := filepath.Join(b.root, "internal", "testenv", "cmd", string(name))
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return recipe{}, fmt.Errorf("listing sources: %w", err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
	return recipe{dir: dir, pkg: ".", ldflags: "-s -w", inputs: files}, nil
}

// sum returns the key. The Go version is that of the running program: its toolchain is the one that built it and
// that "go build" finds, and asking the go command would cost more than the rest of a warm call. Every program of
// one module shares a key, hence a directory and a lock: builds that compile the same packages never run in
// parallel.
func (r recipe) sum() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, "layout 1", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, path := range r.inputs {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("reading what the build depends on: %w", err)
		}
		fmt.Fprintln(h, filepath.Base(path))
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return "", fmt.Errorf("reading %q: %w", path, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// Modules whose releases are put into the programs.
const (
	kubernetesModule = "k8s.io/kubernetes"
	containerdModule = "github.com/containerd/containerd/v2"
)

// KubernetesVersion returns the pinned release of the Kubernetes servers, with its v.
func KubernetesVersion(ctx context.Context) (string, error) {
	return Version(ctx, APIServer)
}

// Version returns the pinned release of one of the Kubernetes servers, kubelets or of containerd, with its v.
func Version(ctx context.Context, name Name) (string, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	var dir string
	module := kubernetesModule
	switch name {
	case APIServer, ControllerManager, Scheduler, Kubelet, OldKubelet:
		if dir, err = kubernetesDir(root, name); err != nil {
			return "", err
		}
	case Containerd, ContainerdShim:
		dir, module = filepath.Join(root, "internal", "controlplane", "containerd"), containerdModule
	default:
		return "", fmt.Errorf("the release of %q is not put into it", name)
	}
	m, err := pinnedRelease(filepath.Join(dir, "go.mod"), module)
	if err != nil {
		return "", err
	}
	return m[1], nil
}

// pinnedRelease returns the release of a module, its major and its minor number as elements 1 to 3.
func pinnedRelease(goMod, module string) ([]string, error) {
	data, err := os.ReadFile(goMod)
	if err != nil {
		return nil, fmt.Errorf("reading the pinned release: %w", err)
	}
	pin, err := regexp.Compile(`(?m)^(?:require)?\s*` + regexp.QuoteMeta(module) + ` (v(\d+)\.(\d+)\.\d+\S*)`)
	if err != nil {
		return nil, err
	}
	m := pin.FindStringSubmatch(string(data))
	if m == nil {
		return nil, fmt.Errorf("reading the pinned release: %q does not require %s", goMod, module)
	}
	return m, nil
}

// stamp returns linker flags that put the pinned release into the programs: without them the servers answer
// v0.0.0 to whoever asks for their version, and the kubelet writes it to its Node.
func stamp(goMod string) (string, error) {
	m, err := pinnedRelease(goMod, kubernetesModule)
	if err != nil {
		return "", err
	}
	const pkg = "k8s.io/component-base/version."
	return fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s -X %sgitTreeState=clean",
		pkg, m[1], pkg, m[2], pkg, m[3], pkg), nil
}

// moduleRoot returns the directory of the main module: this file's own place where the compiler recorded it, else
// (-trimpath) what the go command says of the working directory.
func moduleRoot(ctx context.Context) (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if root := filepath.Join(filepath.Dir(file), "..", "..", ".."); ok && isFile(filepath.Join(root, "go.mod")) {
		return root, nil
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/belayproject/belay").Output()
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" {
		return "", fmt.Errorf("finding the sources of the module: run inside its work tree: %w", err)
	}
	return root, nil
}
