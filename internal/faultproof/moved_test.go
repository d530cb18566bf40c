// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/internal/tier"
)

// move takes the directory of an open store away, and brings it back.
type move struct {
	name       string
	away, back func(t *testing.T, v *volume, spare string)
}

// moves are what administrators and mounts do to a directory. The spare one is empty, on the machine's own disk. What has been moved
// within its file system is known from package checkpoint's own tests, too; what is mounted, from here.
func moves() []move {
	rename := func(t *testing.T, v *volume) { must(t, os.Rename(v.store(), v.store()+".old")) }
	renameBack := func(t *testing.T, v *volume, _ string) {
		if err := os.Remove(v.store()); err != nil && !os.IsNotExist(err) {
			t.Fatal(err) // it holds something
		}
		must(t, os.Rename(v.store()+".old", v.store()))
	}
	return []move{
		{"moved", func(t *testing.T, v *volume, _ string) { rename(t, v) }, renameBack},
		{"replaced", func(t *testing.T, v *volume, _ string) { rename(t, v); must(t, os.Mkdir(v.store(), 0o700)) }, renameBack},
		{"replaced by a link", func(t *testing.T, v *volume, spare string) { rename(t, v); must(t, os.Symlink(spare, v.store())) }, renameBack},
		{"covered by a bind mount", func(t *testing.T, v *volume, spare string) {
			must(t, unix.Mount(spare, v.store(), "", unix.MS_BIND, ""))
		}, func(t *testing.T, v *volume, _ string) { must(t, unix.Unmount(v.store(), 0)) }},
		{"covered by another file system", func(t *testing.T, v *volume, _ string) {
			must(t, unix.Mount("belay-faults", v.store(), "tmpfs", 0, "mode=0700"))
		}, func(t *testing.T, v *volume, _ string) { must(t, unix.Unmount(v.store(), 0)) }},
		{"below a covered directory", func(t *testing.T, v *volume, _ string) {
			must(t, unix.Mount("belay-faults", v.dir, "tmpfs", 0, "mode=0755"))
			must(t, os.Mkdir(v.store(), 0o700))
		}, func(t *testing.T, v *volume, _ string) { must(t, unix.Unmount(v.dir, 0)) }},
		{"unmounted", func(t *testing.T, v *volume, _ string) {
			must(t, unix.Mount(v.dir, v.dir+".kept", "", unix.MS_BIND, ""))
			must(t, unix.Unmount(v.dir, unix.MNT_DETACH))
		}, func(t *testing.T, v *volume, _ string) {
			must(t, unix.Mount(v.dir+".kept", v.dir, "", unix.MS_BIND, ""))
			must(t, unix.Unmount(v.dir+".kept", 0))
		}},
		{"unmounted, with another one in its place", func(t *testing.T, v *volume, _ string) {
			must(t, unix.Mount(v.dir, v.dir+".kept", "", unix.MS_BIND, ""))
			must(t, unix.Unmount(v.dir, unix.MNT_DETACH))
			must(t, os.Mkdir(v.store(), 0o700))
		}, func(t *testing.T, v *volume, _ string) {
			must(t, os.Remove(v.store())) // empty
			must(t, unix.Mount(v.dir+".kept", v.dir, "", unix.MS_BIND, ""))
			must(t, unix.Unmount(v.dir+".kept", 0))
		}},
	}
}

// D10: the directory of an open store is moved, replaced, covered or unmounted. Put and Delete say so and write nothing, neither to what
// is in its place nor to where it went; reading goes on with the records that were opened; and when it is back, so is everything else.
func TestMovedStores(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	eachKind(t, []kind{ext4}, func(t *testing.T, k kind) {
		rounds, n := figure(1, 20, 200), value(1)
		v := newVolume(t, k)
		must(t, os.Mkdir(v.dir+".kept", 0o755))
		t.Cleanup(func() { _ = unix.Unmount(v.dir+".kept", unix.MNT_DETACH) })
		spare := filepath.Join(scratch(t), "spare")
		must(t, os.Mkdir(spare, 0o700))
		must(t, v.mount())
		kp, err := openOurs(v.store())
		must(t, err)
		defer kp.close()
		must(t, kp.put(t.Context(), "d/a", n))
		for range rounds {
			for _, m := range moves() {
				n++
				movedOnce(t, m, v, kp, spare, n)
			}
		}
		must(t, kp.close())
		must(t, v.unmount())
		report(t, "D10", "moves", rounds*len(moves()), rounds*8, "written-elsewhere=0 lost=0", !t.Failed())
	})
}

func movedOnce(t *testing.T, m move, v *volume, kp keeper, spare string, n value) {
	t.Helper()
	m.away(t, v, spare)
	for what, err := range map[string]error{
		"Put": kp.put(t.Context(), "d/a", n), "unchanged Put": kp.put(t.Context(), "d/a", n-1),
		"Put of a new stream": kp.put(t.Context(), "new", n), "Put into a new directory": kp.put(t.Context(), "e/new", n),
		"Delete": kp.put(t.Context(), "d/a", 0),
	} {
		wantKinds(t, m.name+": "+what, err, checkpoint.ErrMoved, checkpoint.ErrNotWritten)
	}
	wantValues(t, kp, map[string]value{"d/a": n - 1})
	for _, dir := range []string{spare, v.store()} {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			t.Fatalf("%s: %q has %v, want nothing", m.name, dir, entries)
		}
	}
	m.back(t, v, spare)
	wantValues(t, kp, map[string]value{"d/a": n - 1, "new": 0, "e/new": 0})
	must(t, kp.put(t.Context(), "d/a", n))
	wantValues(t, kp, map[string]value{"d/a": n})
}
