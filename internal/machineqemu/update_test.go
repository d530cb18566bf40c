// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machineqemu_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/machineqemu"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/internal/tier"
	"github.com/belayproject/belay/machine/provider"
)

// noQemu stands for qemu where no guest is needed: it counts its starts, and says that the guest has joined when a file is not there.
const noQemu = `#!/bin/sh
echo start >>"%[1]s/starts"
while [ -e "%[1]s/silent" ]; do sleep 0.02; done
echo "belay: joined"
exec sleep 1000000
`

// TestUpdateWaitsForTheGuest shows that an update is done when the guest has joined after it, and not when that of the boot before has; and that a qemu that is
// killed is started again, while one that is asked to end is not.
func TestUpdateWaitsForTheGuest(t *testing.T) {
	tier.System(t, tier.Qemu)
	t.Parallel()
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip("there is no mkfs.ext4: install the Debian package e2fsprogs")
	}
	dir, root := t.TempDir(), newRoot(t)
	program, silent := filepath.Join(dir, "qemu"), filepath.Join(dir, "silent")
	must(t, os.WriteFile(program, fmt.Appendf(nil, noQemu, dir), 0o755))
	p, err := machineqemu.New(t.Context(), machineqemu.Options{Root: root, Qemu: program, Images: map[string]machineqemu.Image{"a": {}, "b": {}}})
	must(t, err)
	defer p.Close()
	r := requestFor(config(t, "a", nil))
	_, err = p.Create(t.Context(), r)
	must(t, err)
	must(t, testproc.Poll(within, func() error { return wantStarts(dir, 1) }))
	must(t, os.WriteFile(silent, nil, 0o600))
	d := provider.Desired{Config: config(t, "b", nil)}
	update := provider.UpdateRequest{Ref: provider.Ref{Token: r.Token}, Cluster: r.Owner.Cluster, Digest: d.Digest(), Desired: d}
	able := p.Abilities()
	for end := time.Now().Add(time.Second); time.Now().Before(end) || wantStarts(dir, 2) != nil; {
		if got, err := able.Updater.Update(t.Context(), update); err != nil || got.Done || got.Message == "" {
			t.Fatalf("Update before the guest has joined: got %+v, error %v, want it not to be done", got, err)
		}
	}
	must(t, os.Remove(silent))
	must(t, testproc.Poll(within, func() error { return done(able.Updater.Update(t.Context(), update)) }))
	must(t, wantStarts(dir, 2))

	must(t, testproc.Poll(within, func() error { return killQemu(root) }))
	must(t, testproc.Poll(within, func() error { return wantStarts(dir, 3) }))
	deletion := provider.DeleteRequest{Ref: update.Ref, Mode: provider.Destroy, Cluster: r.Owner.Cluster}
	must(t, testproc.Poll(within, func() error { return done(p.Delete(t.Context(), deletion)) }))
	if err := wantStarts(dir, 3); err != nil || len(processes(root)) > 0 {
		t.Errorf("after Delete: %v, processes %v", err, processes(root))
	}
}

// killQemu kills what stands for qemu once it sleeps: the guest is known to have joined while that is still the shell which is to become the sleep.
func killQemu(root string) error {
	for pid := range processes(root) {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(string(line), "sleep\x001000000") {
			return syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return fmt.Errorf("none of the processes %v sleeps", processes(root))
}

func requestFor(config []byte) provider.CreateRequest {
	o := provider.Owner{Cluster: "c1", Namespace: "ns", Name: "m", UID: "uid-1", Incarnation: 1}
	d := provider.Desired{Config: config}
	return provider.CreateRequest{Token: provider.Token(o.Cluster, o.UID, o.Incarnation), Owner: o, Digest: d.Digest(), Desired: d}
}

func wantStarts(dir string, want int) error {
	text, err := os.ReadFile(filepath.Join(dir, "starts"))
	if got := strings.Count(string(text), "start\n"); got != want {
		return fmt.Errorf("the machine was switched on %d times (%w), want %d", got, err, want)
	}
	return nil
}

// done is nil when a call has come to its end.
func done(p provider.Progress, err error) error {
	if err == nil && !p.Done {
		err = fmt.Errorf("it is not done: %q", p.Message)
	}
	return err
}
