// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/identity"
)

// TestSystemClock: its readings grow together, and its timer fires.
func TestSystemClock(t *testing.T) {
	c := identity.SystemClock()
	wall, elapsed := c.Now(), c.Elapsed()
	fired, stop := c.Timer(20 * time.Millisecond)
	defer stop()
	<-fired
	if d := c.Elapsed() - elapsed; d < 20*time.Millisecond || d > time.Minute {
		t.Errorf("Elapsed has grown by %s in 20 ms", d)
	}
	if d := c.Now().Sub(wall); d < 20*time.Millisecond {
		t.Errorf("Now has grown by %s in 20 ms", d)
	}
	never, stop := c.Timer(time.Hour)
	stop()
	if len(never) != 0 {
		t.Error("a timer that was stopped has fired")
	}
}

// TestElapsedCountsSuspends: on Linux it is the time since boot, suspends included, as the kernel tells it in /proc/uptime.
func TestElapsedCountsSuspends(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Logf("%s has no such clock: the promise does not hold there", runtime.GOOS)
		return
	}
	b, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(b), " ")
	uptime, err := time.ParseDuration(first + "s")
	if err != nil {
		t.Fatal(err)
	}
	if d := identity.SystemClock().Elapsed() - uptime; d < -time.Second || d > time.Minute {
		t.Errorf("Elapsed is %s away from /proc/uptime", d)
	}
}

// TestLocalFingerprint reads what there is, and publishes no machine ID.
func TestLocalFingerprint(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if f := identity.LocalFingerprint(root); f.MachineID != "" || f.Host == "" {
		t.Errorf("of an empty directory: %+v, want this process's host and no machine", f)
	}
	write("proc/sys/kernel/random/boot_id", "boot\n")
	write("etc/machine-id", "0123456789abcdef\n")
	write("etc/hostname", "host\n")
	f := identity.LocalFingerprint(root)
	if f.BootID != "boot" || f.Host != "host" || len(f.MachineID) != 32 || strings.Contains(f.MachineID, "0123456789abcdef") {
		t.Errorf("got %+v", f)
	}
	if again := identity.LocalFingerprint(root); again != f || !again.SameBoot(f) {
		t.Errorf("once more: %+v", again)
	}
	write("etc/machine-id", "uninitialized\n")
	if f := identity.LocalFingerprint(root); f.MachineID != "" {
		t.Errorf("an image that boots for the first time has machine ID %q", f.MachineID)
	}
	if here := identity.LocalFingerprint("/"); runtime.GOOS == "linux" && here.BootID == "" {
		t.Errorf("this machine has no boot ID: %+v", here)
	}
}
