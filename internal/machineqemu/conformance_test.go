// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machineqemu_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
)

// wholeEnv, set to anything, has the whole suite run, with calls that are killed at each of their points; without it those rules are left out, and the long list.
const wholeEnv = "BELAY_MACHINE_QEMU"

// stillQemu stands for qemu in the suite: it counts the starts of a machine, and starts qemu with its processor halted, which is a machine with all that the
// provider is responsible for, and costs nothing. That the guest has joined is said for it.
const stillQemu = `#!/bin/sh
echo start >>"%s/$BELAY_MACHINE"
echo "belay: joined"
exec qemu-system-x86_64 -S "$@"
`

// R-MA-24 and the rest of what a provider promises: virtual machines keep it, and so does what a killed provider leaves.
func TestConformance(t *testing.T) {
	tier.System(t, tier.Qemu)
	t.Parallel()
	all := imagesOf(t)
	root, boots := newRoot(t), t.TempDir()
	program := filepath.Join(t.TempDir(), "qemu")
	must(t, os.WriteFile(program, fmt.Appendf(nil, stillQemu, boots), 0o755))
	s := suite{root: root, boots: boots, options: machineqemu.Options{Root: root, Images: all.byName, Qemu: program}}
	h := s.harness(t)
	h.Config, h.OtherConfig = config(t, all.old, nil), config(t, all.young, nil)
	h.Updates = []provider.Desired{
		{Config: h.OtherConfig},
		{Config: config(t, all.old, nil), Versions: provider.Versions{Kubelet: "v1.36.4"}},
		{Config: config(t, all.old, []string{"data", "more"})},
	}
	h.Many, h.Skips = 4, elsewhere()
	if os.Getenv(wholeEnv) == "" {
		h.Crash, h.Many = nil, -1
		h.Skips = append(h.Skips, "CreateSurvivesCrash", "DeleteSurvivesCrash", "DeleteAfterCrashedCreate", "UpdateSurvivesCrash", "AdoptSurvivesCrash", "ListReturnsMany")
	}
	machinetest.Run(t, h)
}

// elsewhere are the rules about what a directory on this host can't have.
func elsewhere() []string {
	return []string{"OtherZoneIsConflict", "CapacityHasNoEffect", "AdoptOfAliveMovesTags",
		"CreateSurvivesLostReply", "DeleteSurvivesLostReply", "AdoptSurvivesLostReply", "StaleListIsNotNotFound", "StaleListMakesNoSecond",
		"StaleListHidesNothingFromDelete", "RateLimitIsRateLimited", "RateLimitSaysAfter", "RefusedCredentialsAreUnauthorized", "NoCapacityIsStockout",
		"NoCallWaits", "HangingCallsEndWithTheirCtx"}
}

func config(t *testing.T, kernel string, disks []string) []byte {
	t.Helper()
	data, err := json.Marshal(machineqemu.Config{
		Kind:   provider.Kind{APIVersion: machineqemu.APIVersion, Kind: machineqemu.KindName},
		Kernel: kernel, MemoryMiB: 128, Disks: disks, DiskMiB: 16,
	})
	must(t, err)
	return data
}

// A suite is where the machines of the suite are.
type suite struct {
	root, boots string
	options     machineqemu.Options
}

func (s suite) harness(t *testing.T) machinetest.Harness {
	return machinetest.Harness{
		Name: "qemu",
		New: func(ctx context.Context) (provider.Provider, error) {
			p, err := machineqemu.New(ctx, s.options)
			if err == nil {
				t.Cleanup(func() { must(t, p.Close()) })
			}
			return p, err
		},
		Wait:      time.Minute,
		Inventory: func(context.Context) (machinetest.Inventory, error) { return s.inventory() },
		Clean: func(context.Context) error {
			return errors.Join(switchOff(filepath.Dir(s.root)), remove(filepath.Join(s.root, "machines", "*")))
		},
		Running: func(_ context.Context, ref provider.Ref) (bool, error) { return s.processes(ref.Token) > 0, nil },
		Boots:   func(_ context.Context, ref provider.Ref) (int, error) { return s.started(ref.Token) },
		WriteSentinel: func(_ context.Context, i provider.Instance, data []byte) error {
			return writeSentinel(s.disk(i), data)
		},
		ReadSentinel: func(_ context.Context, i provider.Instance) ([]byte, error) { return readSentinel(s.disk(i)) },
		Crash: func(_ context.Context, c machinetest.Call, point int) (bool, error) {
			return crash(t, order{Options: s.options, Call: &c}, point), nil
		},
		Inject: s.inject,
	}
}

func remove(pattern string) error {
	names, err := filepath.Glob(pattern)
	for _, name := range names {
		err = errors.Join(err, os.RemoveAll(name))
	}
	return err
}

func (s suite) processes(token string) (n int) {
	for _, of := range processes(s.root) {
		if of == token {
			n++
		}
	}
	return n
}

// inventory counts directories and processes, and asks no provider.
func (s suite) inventory() (machinetest.Inventory, error) {
	var n machinetest.Inventory
	dirs, err := filepath.Glob(filepath.Join(s.root, "machines", "*"))
	for _, dir := range dirs {
		record, err := os.ReadFile(filepath.Join(dir, "instance.json"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, err
		}
		if s.processes(filepath.Base(dir)) > 0 || !strings.Contains(string(record), `"phase": "Retained"`) {
			n.Instances++
		}
		disks, err := filepath.Glob(filepath.Join(dir, "data", "*"))
		if err != nil {
			return n, err
		}
		n.Disks += len(disks)
	}
	return n, err
}

// started counts the starts of a machine, when that under way has come to qemu. A process that was only just forked does not show yet whose it is, so that
// the provider's record says whether there is one.
func (s suite) started(token string) (n int, err error) {
	err = testproc.Poll(within, func() error {
		record, err := os.ReadFile(filepath.Join(s.root, "machines", token, "instance.json"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		runs := s.processes(token) > 0 || strings.Contains(string(record), `"phase": "Running"`)
		if runs && len(emulators(s.root)[token]) == 0 {
			return fmt.Errorf("machine %q has no qemu yet", token)
		}
		text, err := os.ReadFile(filepath.Join(s.boots, token))
		n = strings.Count(string(text), "start\n")
		return err
	})
	return n, err
}

func (s suite) disk(i provider.Instance) string {
	return filepath.Join(s.root, "machines", i.Token, "data", "data", "disk.raw")
}

// sentinelSize is that of the first block of a disk, which ext4 leaves to boot loaders.
const sentinelSize = 1024

// writeSentinel waits until the machine has its disk.
func writeSentinel(disk string, data []byte) error {
	return testproc.Poll(within, func() error {
		f, err := os.OpenFile(disk, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(append(data, make([]byte, sentinelSize-len(data))...), 0)
		return errors.Join(err, f.Close())
	})
}

func readSentinel(disk string) ([]byte, error) {
	f, err := os.Open(disk)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	block := make([]byte, sentinelSize)
	_, err = f.ReadAt(block, 0)
	return []byte(strings.TrimRight(string(block), "\x00")), err
}

// crash makes a call in a process that is killed after a time, which grows with the point, and reports whether it was.
func crash(t *testing.T, o order, point int) bool {
	t.Helper()
	cmd := o.start(t, os.Stderr)
	timer := time.AfterFunc(time.Duration(point*point)*time.Millisecond, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

// inject takes the directory away: the disk is not mounted.
func (s suite) inject(f machinetest.Fault) func() {
	if f != machinetest.Unavailable {
		return nil
	}
	away := s.root + " elsewhere"
	if err := os.Rename(s.root, away); err != nil {
		return nil
	}
	return func() { _ = os.Rename(away, s.root) } // the next rule fails without
}
