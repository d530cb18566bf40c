// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/belayproject/belay/machine"
)

const sayHello = "package main\n\nfunc main() { print(\"hello\") }\n"

// program writes the sources of a program and returns a builder with an empty cache and a recipe for it.
func program(t *testing.T, source string) (builder, recipe, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.test/hello\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "main.go"), source)
	r := recipe{
		dir: dir, pkg: ".", ldflags: "-s -w", note: "takes long",
		inputs: []string{filepath.Join(dir, "go.mod"), filepath.Join(dir, "main.go")},
	}
	var err error
	if r.key, err = r.sum(); err != nil {
		t.Fatal(err)
	}
	output := &bytes.Buffer{}
	return builder{cache: t.TempDir(), progress: &lockedWriter{w: output}}, r, output
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func runs(t *testing.T, path string) {
	t.Helper()
	if out, err := exec.Command(path).CombinedOutput(); err != nil || string(out) != "hello" {
		t.Errorf("running %q printed %q: %v", path, out, err)
	}
}

// TestOneOfManyBuilds needs the lock: each caller opens it anew, as another process does.
func TestOneOfManyBuilds(t *testing.T) {
	b, r, output := program(t, sayHello)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			path, err := b.ensure(t.Context(), "hello", r)
			if err != nil {
				t.Error(err)
				return
			}
			runs(t, path)
		})
	}
	group.Wait()
	if n := strings.Count(output.String(), "belay: built hello in"); n != 1 {
		t.Errorf("four callers built %d times, want once; progress:\n%s", n, output)
	}
	if !strings.Contains(output.String(), "building hello (takes long") {
		t.Errorf("progress does not say what is built and why it takes long:\n%s", output)
	}
}

func TestSecondCallSaysAndBuildsNothing(t *testing.T) {
	b, r, output := program(t, sayHello)
	first, err := b.ensure(t.Context(), "hello", r)
	if err != nil {
		t.Fatal(err)
	}
	output.Reset()
	r.dir = "/nonexistent" // a compiler could not even start
	second, err := b.ensure(t.Context(), "hello", r)
	if err != nil || second != first || output.Len() > 0 {
		t.Errorf("second call: %q, %v, progress %q; want %q and silence", second, err, output, first)
	}
}

func TestFailedBuildSaysWhyAndLeavesNoProgram(t *testing.T) {
	b, r, _ := program(t, "package main\n\nfunc main() { undefinedName() }\n")
	path, err := b.ensure(t.Context(), "hello", r)
	if err == nil || !strings.Contains(err.Error(), "undefinedName") {
		t.Errorf("building a broken program: error %v, want the compiler's words", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a failed build %q exists (%v)", path, err)
	}
}

func TestKilledBuildIsDoneAgain(t *testing.T) {
	b, r, _ := program(t, sayHello)
	dir := filepath.Join(b.cache, r.key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ".hello.tmp"), "half a progr")
	write(t, filepath.Join(dir, ".lock"), "")
	path, err := b.ensure(t.Context(), "hello", r)
	if err != nil {
		t.Fatal(err)
	}
	runs(t, path)
}

func TestWaitForAnotherBuildEndsWithTheContext(t *testing.T) {
	b, _, output := program(t, sayHello)
	path := filepath.Join(b.cache, ".lock")
	unlock, err := b.lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockPoll)
	defer cancel()
	if _, err := b.lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second holder of the lock: error %v, want DeadlineExceeded", err)
	}
	if n := strings.Count(output.String(), "waiting for another process"); n != 1 {
		t.Errorf("the wait was announced %d times, want once", n)
	}
}

func TestKeyChangesWithThePins(t *testing.T) {
	_, r, _ := program(t, sayHello)
	write(t, r.inputs[0], "module example.test/hello\n\ngo 1.26\n\nrequire example.test/other v1.0.0\n")
	changed, err := r.sum()
	if err != nil {
		t.Fatal(err)
	}
	if changed == r.key {
		t.Error("another requirement gives the same key, so an old program would be used")
	}
}

func TestAssetsOfOtherProjectsAreUsed(t *testing.T) {
	assets := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	for _, name := range []Name{Etcd, APIServer} {
		if _, err := Ensure(t.Context(), io.Discard, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is not in KUBEBUILDER_ASSETS: error %v, want fs.ErrNotExist", name, err)
		}
		path := filepath.Join(assets, string(name))
		write(t, path, "a program")
		set, err := Ensure(t.Context(), io.Discard, name)
		if err != nil || set[name] != path {
			t.Errorf("Ensure(%s) = %q, %v, want %q", name, set[name], err, path)
		}
	}
	if path, err := fromAssets(Kubelet); path != "" || err != nil {
		t.Errorf("KUBEBUILDER_ASSETS was asked for a kubelet: %q, %v", path, err)
	}
}

func TestUnknownNameIsRefused(t *testing.T) {
	_, err := Ensure(t.Context(), io.Discard, "kube-nothing")
	if err == nil || !strings.Contains(err.Error(), `"kube-nothing"`) {
		t.Errorf("Ensure of an unknown program: error %v, want one that names it", err)
	}
}

func TestStampHoldsThePinnedRelease(t *testing.T) {
	goMod := filepath.Join(t.TempDir(), "go.mod")
	write(t, goMod, "module x\n\nrequire (\n\tk8s.io/kubernetes v1.42.7\n)\n")
	flags, err := stamp(goMod)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"version.gitVersion=v1.42.7", "version.gitMajor=1", "version.gitMinor=42"} {
		if !strings.Contains(flags, want) {
			t.Errorf("stamp = %q, want %q in it", flags, want)
		}
	}
	write(t, goMod, "module x\n")
	if _, err := stamp(goMod); err == nil {
		t.Error("stamp accepted a go.mod that pins no release")
	}
}

// TestVersionsDiffer is what a test that takes a machine up and down needs of the pins: the kubelets are of two releases, the older one not newer than
// the API server, which is what a control plane takes.
func TestVersionsDiffer(t *testing.T) {
	versions := map[Name]string{}
	for _, name := range []Name{APIServer, Kubelet, OldKubelet, Containerd, ContainerdShim} {
		var err error
		if versions[name], err = Version(t.Context(), name); err != nil || !strings.HasPrefix(versions[name], "v") {
			t.Errorf("Version(%s) = %q, %v, want a release with its v", name, versions[name], err)
		}
	}
	if versions[Kubelet] != versions[APIServer] || versions[ContainerdShim] != versions[Containerd] {
		t.Errorf("the pins are %v: want one release of each project's programs", versions)
	}
	if machine.Skew(versions[APIServer], versions[OldKubelet]) != "" || versions[OldKubelet] == versions[Kubelet] {
		t.Errorf("the kubelets are %s and %s: want two that run beside the API server", versions[Kubelet], versions[OldKubelet])
	}
	if _, err := Version(t.Context(), Reaper); err == nil {
		t.Error("Version of a program of this module: no error")
	}
}

// TestOwnCommandsImportOnlyTheStandardLibrary protects their key, which is made of their own files alone.
func TestOwnCommandsImportOnlyTheStandardLibrary(t *testing.T) {
	for _, name := range []string{"reaper", "pause"} {
		cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
		cmd.Dir = filepath.Join("..", "cmd", name)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Fields(string(out)); len(got) != 1 {
			t.Errorf("command %s depends on %q, want itself alone", name, got)
		}
	}
}

// TestCommandsOfAllServersAreKnown catches a name that was added without a way to build it.
func TestCommandsOfAllServersAreKnown(t *testing.T) {
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string][]Name{}
	for _, name := range All() {
		r, err := builder{root: root}.recipe(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		keys[r.key] = append(keys[r.key], name)
	}
	if len(keys) != 7 { // servers, kwok, old kubelet, containerd, reaper, pause, guest
		t.Errorf("programs share keys as %v, want one key for each module and own command", keys)
	}
}
