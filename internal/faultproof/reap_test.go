// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/tier"
)

const lingerVar = "BELAY_FAULTS_LINGER"

// linger keeps a disk of ours, a loop device on it and a file system on that busy until it is killed.
func linger(t *testing.T) {
	r := newRecorder(t, ext4)
	must(t, r.mount())
	k, err := openOurs(r.store())
	must(t, err)
	l := newLedger()
	fmt.Println("linger", os.Getpid(), r.file)
	t.Error(writers{keeper: k, ledger: l, journal: l}.run(context.Background(), 1))
}

// loopsOn gives the loop devices on a file of this name.
func loopsOn(t *testing.T, file string) (devices []string) {
	t.Helper()
	attached, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	must(t, err)
	for _, a := range attached {
		if text, err := os.ReadFile(a); err == nil && strings.HasSuffix(strings.TrimSpace(string(text)), file) {
			devices = append(devices, a)
		}
	}
	return devices
}

// Whatever a test has mounted, and every loop device, is gone after the test's process is killed in the middle of it; and so is every
// process that it started. The namespace and the parents' deaths see to that, so there is nothing that could be killed as well.
func TestNothingIsLeftBehind(t *testing.T) {
	tier.System(t, tier.Root, tier.Disks)
	if os.Getenv(lingerVar) != "" {
		linger(t)
		return
	}
	needMounts(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), lingerVar+"=1")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	scan := bufio.NewScanner(out)
	var pid int
	var file, word string
	for file == "" && scan.Scan() {
		if !strings.HasPrefix(scan.Text(), "linger ") {
			t.Log(scan.Text())
		} else if _, err := fmt.Sscan(scan.Text(), &word, &pid, &file); err != nil {
			t.Fatal(err)
		}
	}
	file = filepath.Base(file)
	busy := len(loopsOn(t, file))
	must(t, cmd.Process.Kill())
	scanned := make(chan struct{})
	go func() {
		for scan.Scan() {
		}
		close(scanned)
	}()
	if busy != 1 {
		t.Fatalf("%d loop devices were on %q while the test ran, want 1", busy, file)
	}
	// The output ends with the last process that has it.
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(5 * time.Millisecond) {
		gone := ended(scanned) && errors.Is(unix.Kill(pid, 0), unix.ESRCH)
		if loops := loopsOn(t, file); gone && len(loops) == 0 {
			_ = cmd.Wait()
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("process %d is gone: %t; loop devices left: %v", pid, gone, loops)
		}
	}
}

func ended(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
