// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/tier"
)

// mount makes a small file system in memory.
func mount(t *testing.T, options string) string {
	t.Helper()
	tier.Require(t)
	dir := t.TempDir()
	if err := unix.Mount("belay-test", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("mounting a small file system needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// remount turns the file system read-only, or back. Files that are open for writing stand in the way for a moment.
func remount(t *testing.T, dir string, flags uintptr) {
	t.Helper()
	e2e.Eventually(t, soon, "the disk is remounted", func() error {
		return unix.Mount("", dir, "", unix.MS_REMOUNT|flags, "")
	})
}

// fill takes all bytes and all files that are left.
func fill(t *testing.T, dir string) {
	t.Helper()
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 4<<10))
	}
	if closing := filler.Close(); !errors.Is(err, unix.ENOSPC) || closing != nil {
		t.Fatalf("filling the disk: %v, %v", err, closing)
	}
	for i := 0; err == nil || i == 0; i++ {
		err = os.Mkdir(filepath.Join(dir, fmt.Sprintf("filler-%d", i)), 0o700)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
}

// staysOn checks that the child runs cm and that neither it nor the agent ends.
func (w *world) staysOn(t *testing.T, p *e2e.Process, cm *corev1.ConfigMap) {
	t.Helper()
	w.runs(t, cm)
	children := fmt.Sprint(w.Children(t))
	e2e.Throughout(t, 3*time.Second, "the agent and its child run", func() error {
		if got := fmt.Sprint(w.Children(t)); got != children {
			return fmt.Errorf("the child is process %s, was %s", got, children)
		}
		return p.Running()
	})
}

// A disk that turned bad under the state takes nobody off a good config: the agent runs, its child runs, and once the disk is good
// the sub-commands reach it again.
func TestAgentStartsOnABadDisk(t *testing.T) {
	tier.System(t, tier.Root, tier.Mount)
	t.Parallel()
	for name, bad := range map[string]struct {
		spoil, repair func(t *testing.T, disk string)
	}{
		"readonly": {
			func(t *testing.T, disk string) { remount(t, disk, unix.MS_RDONLY) },
			func(t *testing.T, disk string) { remount(t, disk, 0) },
		},
		"full": {fill, func(t *testing.T, disk string) {
			list, err := filepath.Glob(filepath.Join(disk, "filler*"))
			for _, name := range list {
				err = errors.Join(err, os.Remove(name))
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := mount(t, "size=16m,nr_inodes=200")
			w := newWorld(t, shared.Env(t), name)
			w.StateDir, w.Render = filepath.Join(disk, "state"), filepath.Join(disk, "run", "kubelet.conf")
			w.Child[2] = w.Render
			p := w.Start(t)
			v1 := w.good(t, name+"-v1")
			if code := p.Stop(t); code != 0 {
				t.Fatalf("asked to stop, the agent exits with %d, want 0", code)
			}
			bad.spoil(t, disk)
			p = w.Start(t)
			if name == "readonly" { // on a full disk the store's own clearing up makes room for a socket
				e2e.Eventually(t, soon, "the agent tries to open its socket", func() error { return p.Logged("Sub-commands can't reach this agent", 2) })
			}
			w.staysOn(t, p, v1)
			bad.repair(t, disk)
			e2e.Eventually(t, soon, "the sub-commands reach the agent", func() error { return w.Uses(t, string(v1.UID)) })
			if code := p.Stop(t); code != 0 {
				t.Errorf("asked to stop, the agent exits with %d, want 0", code)
			}
		})
	}
}

// Without a state directory that can be used, a node runs on the local config and says why it takes no other.
func TestAgentStartsWithoutRecords(t *testing.T) {
	tier.System(t, tier.Root, tier.Mount)
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, disk string)
		cause string
	}{
		"first-readonly": {func(t *testing.T, disk string) { remount(t, disk, unix.MS_RDONLY) }, "read-only file system"},
		"first-full":     {fill, "no space left on device"},
		"untrusted": {func(t *testing.T, disk string) {
			if err := errors.Join(os.Mkdir(filepath.Join(disk, "open"), 0o700), os.Chmod(disk, 0o777)); err != nil {
				t.Fatal(err)
			}
		}, "everyone may write"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := mount(t, "size=1m,nr_inodes=20,mode=755")
			w := newWorld(t, shared.Env(t), name)
			w.StateDir = filepath.Join(disk, "state")
			c.spoil(t, disk)
			w.push(t, name+"-v1", w.Config("maxPods: 42\n"))
			p := w.Start(t)
			w.staysOn(t, p, &corev1.ConfigMap{Data: map[string]string{"kubelet": w.Config("")}})
			got, err := w.ConfigOK(t, w.Node)
			if err != nil || got.Status != corev1.ConditionUnknown || got.Message != "using current (init)" ||
				!strings.Contains(got.Reason, "the state directory can't be used") || !strings.Contains(got.Reason, c.cause) {
				t.Errorf("ConfigOK is %+v (%v), want Unknown with the local config and %q", got, err, c.cause)
			}
			if code := p.Stop(t); code != 0 {
				t.Errorf("asked to stop, the agent exits with %d, want 0", code)
			}
		})
	}
}
