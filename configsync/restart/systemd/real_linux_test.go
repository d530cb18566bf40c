// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package systemd_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/belayproject/belay/configsync/restart/systemd"
	"github.com/belayproject/belay/internal/systemdenv"
	"github.com/belayproject/belay/internal/tier"
)

// R-CS-39, C-07: a real systemd restarts the unit, says what it is doing, and keeps to what its policy foretells.
func TestRealSystemd(t *testing.T) {
	tier.System(t, tier.Root, tier.Systemd)
	systemdenv.Run(t, nil, func(t *testing.T, units string) {
		write := func(name, service string) {
			t.Helper()
			text := "[Unit]\nDefaultDependencies=no\n[Service]\nType=exec\nRestartSec=50ms\n" + service
			if err := os.WriteFile(filepath.Join(units, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		starts := filepath.Join(units, "starts")
		write("steady.service", "ExecStartPre=/bin/sh -c 'echo >> "+starts+"'\nExecStart=/bin/sleep 1000\nRestart=always\n")
		write("gone.service", "ExecStart=/bin/true\nRestart=on-failure\nSuccessExitStatus=75\n")

		restarted(t, starts)
		ended(t)
	})
}

// restarted has a unit restarted twice.
func restarted(t *testing.T, starts string) {
	t.Helper()
	steady := real(t, "steady.service")
	for _, want := range []int64{1, 2} {
		if err := steady.Restart(t.Context(), adopt); err != nil {
			t.Fatal(err)
		}
		if err := steady.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(starts); err != nil || info.Size() != want {
			t.Errorf("the unit was started %v times (%v), want %d", info.Size(), err, want)
		}
	}
	if p, err := steady.Policy(t.Context()); err != nil || p.After(0) != nil || !errors.Is(p.Endless(), systemd.ErrStaysDown) {
		t.Errorf("Policy = %+v, %v, want one that comes back, within systemd's default limit of starts", p, err)
	}
}

// ended has a unit end well that is not to come back then.
func ended(t *testing.T) {
	t.Helper()
	gone := real(t, "gone.service")
	p, err := gone.Policy(t.Context())
	if err != nil || !errors.Is(p.After(0), systemd.ErrStaysDown) || !errors.Is(p.After(75), systemd.ErrStaysDown) || p.After(1) != nil {
		t.Errorf("Policy = %+v, %v, want one that comes back after 1, not after 0 and 75", p, err)
	}
	if err := gone.Restart(t.Context(), adopt); err != nil {
		t.Fatal(err)
	}
	systemdenv.Eventually(t, "a unit that ended well under Restart=on-failure stays down", func() error {
		if err := gone.Check(t.Context()); !errors.Is(err, systemd.ErrNotActive) {
			return errors.Join(errors.New("it is not down"), err)
		}
		return nil
	})
	if _, err := real(t, "absent.service").Policy(t.Context()); err == nil {
		t.Error("a unit that isn't there has a policy")
	}
}

func real(t *testing.T, name string) *systemd.Unit {
	t.Helper()
	u, err := systemd.New(name, systemd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}
