// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package systemd_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/restart/systemd"
)

var (
	_ configsync.Restarter = (*systemd.Unit)(nil)
	_ configsync.Probe     = (*systemd.Unit)(nil)
)

// A bus is a systemd with one unit.
type bus struct {
	result     string // of the job; empty: it never ends
	err        error
	properties map[string]any
	log        []string
}

func (b *bus) RestartUnitContext(_ context.Context, name, mode string, done chan<- string) (int, error) {
	b.log = append(b.log, "restart "+name+" "+mode)
	if b.err == nil && b.result != "" {
		done <- b.result
	}
	return 1, b.err
}

func (b *bus) GetAllPropertiesContext(context.Context, string) (map[string]any, error) {
	return b.properties, b.err
}

func (b *bus) GetUnitNameByPID(context.Context, uint32) (string, error) { return "own.service", b.err }

func (b *bus) Close() { b.log = append(b.log, "close") }

func (b *bus) dial(context.Context) (systemd.Bus, error) { return b, nil }

func unit(t *testing.T, b *bus, prepare func(context.Context, configsync.Change) error) *systemd.Unit {
	t.Helper()
	u, err := systemd.New("kubelet.service", systemd.Options{Dial: b.dial, Prepare: prepare})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

var adopt = configsync.Change{Kind: configsync.Adopt, Why: "a drill"}

// R-CS-39: the config is in place before the restart, and what was restarted is left to its probes; a restart that didn't happen is an error.
func TestRestartOfAUnit(t *testing.T) {
	for result, ok := range map[string]bool{"done": true, "failed": true, "timeout": true, "canceled": false, "dependency": false, "skipped": false} {
		b := &bus{result: result}
		err := unit(t, b, func(_ context.Context, c configsync.Change) error {
			b.log = append(b.log, "prepare "+string(c.Kind))
			return nil
		}).Restart(t.Context(), adopt)
		if got, want := strings.Join(b.log, ", "), "prepare Adopt, restart kubelet.service replace, close"; got != want || (err == nil) != ok {
			t.Errorf("a job that ends with %q: %v, after %q, want ok: %t, after %q", result, err, got, ok, want)
		}
	}
	inTheWay, b := errors.New("no space"), &bus{result: "done"}
	err := unit(t, b, func(context.Context, configsync.Change) error { return inTheWay }).Restart(t.Context(), adopt)
	if !errors.Is(err, inTheWay) || len(b.log) != 0 {
		t.Errorf("a restart that can't be prepared: %v, after %q, want what is in the way, and nothing done", err, b.log)
	}
	gone := errors.New("no such unit")
	if err := unit(t, &bus{err: gone}, nil).Restart(t.Context(), adopt); !errors.Is(err, gone) {
		t.Errorf("systemd refuses, and Restart = %v, want its error", err)
	}
}

// A restart that takes long is under way; one whose caller has gone is an error.
func TestSlowRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if err := unit(t, &bus{}, nil).Restart(t.Context(), adopt); err != nil || time.Since(begun) != 90*time.Second {
			t.Errorf("Restart = %v after %s, want nil after 90 s", err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := unit(t, &bus{}, nil).Restart(ctx, adopt); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Restart = %v, want the end of its context", err)
		}
	})
}

func TestCheckOfAUnit(t *testing.T) {
	b := &bus{properties: map[string]any{"ActiveState": "active"}}
	if err := unit(t, b, nil).Check(t.Context()); err != nil {
		t.Errorf("an active unit: %v, want nil", err)
	}
	b.properties = map[string]any{"ActiveState": "failed", "SubState": "failed", "Result": "oom-kill"}
	if err := unit(t, b, nil).Check(t.Context()); !errors.Is(err, systemd.ErrNotActive) || !strings.Contains(err.Error(), "failed (failed), result oom-kill") {
		t.Errorf("a failed unit: %v, want ErrNotActive with its state", err)
	}
	b.err = errors.New("connection reset")
	if err := unit(t, b, nil).Check(t.Context()); !errors.Is(err, b.err) {
		t.Errorf("trouble with the bus: %v, want it", err)
	}
}

// C-08: a unit that systemd doesn't know has no policy.
func TestPolicyOfAUnit(t *testing.T) {
	b := &bus{properties: map[string]any{"LoadState": "not-found", "Restart": "no"}}
	if p, err := unit(t, b, nil).Policy(t.Context()); err == nil || !strings.Contains(err.Error(), "not-found") {
		t.Errorf("Policy = %+v, %v, want what systemd says", p, err)
	}
	b.properties = map[string]any{"LoadState": "loaded", "Restart": "on-failure"}
	own, err := systemd.Own(t.Context(), systemd.Options{Dial: b.dial})
	if err != nil {
		t.Fatal(err)
	}
	p, err := own.Policy(t.Context())
	if err != nil || p.Unit != "own.service" || !errors.Is(p.After(0), systemd.ErrStaysDown) {
		t.Errorf("Policy = %+v, %v, want that of own.service, which doesn't come back after 0", p, err)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, name := range []string{"", "kubelet", "a/b.service", "*.service", "kubelet.timer"} {
		if _, err := systemd.New(name, systemd.Options{}); err == nil || !strings.Contains(err.Error(), "such as kubelet.service") {
			t.Errorf("New(%q) = %v, want an error that shows a right name", name, err)
		}
	}
	if _, err := systemd.New("a.service", systemd.Options{Timeout: -1}); err == nil {
		t.Error("a negative time-out is taken")
	}
}
