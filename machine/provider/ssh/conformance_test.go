// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/tier"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
)

// helperEnv has the test binary be another process of a controller.
const helperEnv = "BELAY_SSH_TEST_HELPER"

// A job is what a helper does: one call, and it dies at a point of it.
type job struct {
	Settings settings
	Call     machinetest.Call
	Point    int
	// Drive has it create, or delete, until it is killed.
	Drive  []provider.CreateRequest
	Delete bool
}

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) == "" {
		os.Exit(m.Run())
	}
	if err := help(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func help() error {
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		return err
	}
	c, err := j.Settings.core()
	if err != nil {
		return err
	}
	p := typed(c)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if j.Drive != nil {
		return drive(ctx, p, j)
	}
	points := 0
	p.core.at = func(string) {
		if points == j.Point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		points++
	}
	_ = j.Call.Do(ctx, p) // what becomes of it is seen by others
	return nil
}

func helper(ctx context.Context, j job) (*exec.Cmd, *bytes.Buffer, error) {
	input, err := json.Marshal(j)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"=1")
	cmd.Stdin = bytes.NewReader(input)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	return cmd, &stderr, cmd.Start()
}

// killed waits for a helper and reports whether it was killed.
func killed(cmd *exec.Cmd, stderr *bytes.Buffer) (bool, error) {
	err := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true, nil
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return false, fmt.Errorf("helper: %w: %s", err, stderr.String())
	}
	return false, nil
}

func (p *pool) harness(name string) machinetest.Harness {
	other := p.config(map[string]any{"timeoutSeconds": 100})
	full := false
	h := machinetest.Harness{
		Name: name,
		// There are no capacities to tell, no lists that could be behind, and nobody who limits calls.
		Skips: []string{
			"CapacityHasNoEffect", "StaleListIsNotNotFound", "StaleListMakesNoSecond", "StaleListHidesNothingFromDelete", "RateLimitIsRateLimited", "RateLimitSaysAfter",
		},
		New: func(context.Context) (provider.Provider, error) {
			o := p.settings().options()
			o.Hosts, o.Inventory = nil, func(context.Context) ([]Host, error) {
				if full {
					return p.taken(), nil
				}
				return p.hosts, nil
			}
			c, err := p.settings().with(o)
			if err != nil {
				return nil, err
			}
			return typed(c), nil
		},
		Config: p.config(nil), OtherConfig: other,
		Zones:     [][]byte{p.config(map[string]any{"selector": map[string]string{"zone": "a"}}), p.config(map[string]any{"selector": map[string]string{"zone": "b"}})},
		Updates:   []provider.Desired{{Config: other, Versions: provider.Versions{Kubelet: "v1.36.3"}}, {Config: p.config(map[string]any{"update": nil})}},
		Inventory: func(context.Context) (machinetest.Inventory, error) { return p.inventory() },
		Clean:     func(context.Context) error { return p.clean() },
		Running:   func(_ context.Context, ref provider.Ref) (bool, error) { return p.runs(hostOf(ref)), nil },
		Boots: func(_ context.Context, ref provider.Ref) (int, error) {
			return p.count("run." + hostOf(ref) + ".boots"), nil
		},
		WriteSentinel: func(_ context.Context, i provider.Instance, data []byte) error {
			return os.WriteFile(p.sentinel(i), data, 0o600)
		},
		ReadSentinel: func(_ context.Context, i provider.Instance) ([]byte, error) {
			data, err := os.ReadFile(p.sentinel(i))
			if errors.Is(err, os.ErrNotExist) {
				return nil, nil
			}
			return data, err
		},
		Crash: func(ctx context.Context, call machinetest.Call, point int) (bool, error) {
			cmd, stderr, err := helper(ctx, job{Settings: p.settings(), Call: call, Point: point})
			if err != nil {
				return false, err
			}
			return killed(cmd, stderr)
		},
		Many: hosts, Wait: time.Minute,
	}
	h.Inject = func(f machinetest.Fault) func() {
		if f == machinetest.Stockout {
			full = true
			return func() { full = false }
		}
		return p.fault(f)
	}
	return h
}

// fault begins one that the command has, and returns what ends it, or nil.
func (p *pool) fault(f machinetest.Fault) func() {
	files := map[machinetest.Fault]string{
		machinetest.Unavailable: "unavailable", machinetest.Unauthorized: "unauthorized", machinetest.LostReply: "lost", machinetest.Latency: "hang",
		machinetest.SlowStart: "slow",
	}
	if name := files[f]; name != "" {
		return p.inject(name)
	}
	return nil
}

func (p *pool) sentinel(i provider.Instance) string {
	return filepath.Join(p.disks, hostOf(i.Ref()), "data", "sentinel")
}

// taken are the hosts that have a claim.
func (p *pool) taken() []Host {
	var all []Host
	for _, h := range p.hosts {
		if _, err := os.Stat(filepath.Join(h.Directory, "claim.json")); err == nil {
			all = append(all, h)
		}
	}
	return all
}

// The rules of providers, over a command that stands in for ssh.
func TestConformance(t *testing.T) {
	h := newPool(t, hosts).harness("ssh (stand-in)")
	if !tier.RunsWhole(t) { // each crash is a process; TestHostDiesAtEachPoint has some
		h.Crash = nil
		h.Skips = append(h.Skips, "CreateSurvivesCrash", "DeleteSurvivesCrash", "DeleteAfterCrashedCreate",
			"UpdateSurvivesCrash", "AdoptSurvivesCrash")
	}
	machinetest.Run(t, h)
}
