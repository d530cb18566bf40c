// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/internal/tier"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/local"
)

// boots is a machine that notes each of its starts on its disk. It ends when it is asked to, also as the first process of its namespace.
const boots = "echo start >>data/data/boots; echo on; trap 'kill $!; exit 0' TERM; sleep 1000000 & wait"

// Processes keep every promise of a provider, and so does what a killed one leaves (R-MA-02, R-MA-24).
func TestConformance(t *testing.T) {
	conform(t, local.None, 30)
}

// So do processes in namespaces of their own.
func TestConformanceInNamespaces(t *testing.T) {
	p := open(t, local.Options{Root: newRoot(t)})
	if err := p.Confined(); err != nil {
		t.Logf("machines have no namespaces here, and are none when they are required: %v", err)
		r := request(1, config(t, func(c *local.Config) { c.Namespaces = local.Required }))
		_, err := p.Create(t.Context(), r)
		wantClass(t, "Create of a machine with namespaces", err, provider.InvalidConfig)
		return
	}
	tier.LeaveToProofs(t, "machines in namespaces keep every promise; TestConformance has those without any")
	conform(t, local.Required, 10)
}

func conform(t *testing.T, n local.Namespaces, many int) {
	root := newRoot(t)
	with := func(change func(c *local.Config)) []byte {
		return config(t, func(c *local.Config) {
			shell(boots)(c)
			c.Namespaces, c.ReloadSignal, c.GraceSeconds = n, "SIGWINCH", 1
			if change != nil {
				change(c)
			}
		})
	}
	h := machinetest.Harness{
		Name: "local, namespaces " + string(n),
		New: func(ctx context.Context) (provider.Provider, error) {
			p, err := local.New(ctx, local.Options{Root: root})
			if err == nil {
				t.Cleanup(func() { _ = p.Close() })
			}
			return p, err
		},
		Config:      with(nil),
		OtherConfig: with(func(c *local.Config) { c.Env = map[string]string{"MORE": "1"} }),
		Updates: []provider.Desired{
			{Config: with(func(c *local.Config) { c.Files = []local.File{{Path: "etc/a", Content: "1"}} })},
			{Config: with(func(c *local.Config) { c.Env = map[string]string{"MORE": "1"} })},
			{Config: with(nil), Versions: provider.Versions{Kubelet: "v1.36.4"}},
			{Config: with(func(c *local.Config) { c.Command = []string{"sleep", "2000000"} })},
		},
		Many: many, Wait: within,
		Inventory: func(context.Context) (machinetest.Inventory, error) { return inventory(t, root) },
		Clean:     func(context.Context) error { return clean(t, root) },
		Running: func(_ context.Context, ref provider.Ref) (bool, error) {
			return census(t, root)[ref.Token] > 0, nil
		},
		Boots: func(_ context.Context, ref provider.Ref) (int, error) { return bootsOf(root, ref.Token) },
		WriteSentinel: func(_ context.Context, i provider.Instance, data []byte) error {
			return os.WriteFile(sentinel(root, i), data, 0o600)
		},
		ReadSentinel: func(_ context.Context, i provider.Instance) ([]byte, error) { return readIfThere(sentinel(root, i)) },
		Crash: func(_ context.Context, c machinetest.Call, point int) (bool, error) {
			return run(t, order{Root: root, Call: &c, Point: point}), nil
		},
		Inject: func(f machinetest.Fault) func() { return inject(t, root, f) },
	}
	check(t, h)
}

// check runs the suite and demands that exactly those rules are skipped that can't be here.
func check(t *testing.T, h machinetest.Harness) {
	t.Helper()
	skips := notHere()
	if raceshare.Step(t) > 1 { // hundreds of children, each with the race detector
		h.Crash = nil
		skips = slices.Insert(skips, 3, "CreateSurvivesCrash", "DeleteSurvivesCrash", "DeleteAfterCrashedCreate", "UpdateSurvivesCrash", "AdoptSurvivesCrash")
	}
	checked(t, h, skips)
}

// checked runs the suite, which has to skip those rules and no other.
func checked(t *testing.T, h machinetest.Harness, skips []string) {
	t.Helper()
	report, err := machinetest.Check(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	for _, f := range report.Of(machinetest.Failed) {
		t.Error(f)
	}
	var skipped []string
	for _, s := range report.Of(machinetest.Skipped) {
		skipped = append(skipped, s.Name)
	}
	if !slices.Equal(skipped, skips) {
		t.Errorf("skipped: got %q, want %q", skipped, skips)
	}
}

// notHere are the rules about what a directory on this host can't have.
func notHere() []string {
	return []string{"OtherZoneIsConflict", "CapacityHasNoEffect", "AdoptOfAliveMovesTags",
		"CreateSurvivesLostReply", "DeleteSurvivesLostReply", "AdoptSurvivesLostReply", "StaleListIsNotNotFound", "StaleListMakesNoSecond",
		"StaleListHidesNothingFromDelete", "RateLimitIsRateLimited", "RateLimitSaysAfter", "RefusedCredentialsAreUnauthorized", "NoCapacityIsStockout",
		"NoCallWaits", "HangingCallsEndWithTheirCtx"}
}

// inventory counts directories and processes, and asks no provider.
func inventory(t *testing.T, root string) (machinetest.Inventory, error) {
	var n machinetest.Inventory
	run := census(t, root)
	dirs, err := filepath.Glob(filepath.Join(root, "machines", "*"))
	for _, dir := range dirs {
		record, err := readIfThere(filepath.Join(dir, "instance.json"))
		if err != nil {
			return n, err
		}
		if run[filepath.Base(dir)] > 0 || !strings.Contains(string(record), `"phase": "Retained"`) {
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

func clean(t *testing.T, root string) error {
	killAll(t, root)
	dirs, err := filepath.Glob(filepath.Join(root, "machines", "*"))
	for _, dir := range dirs {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

func sentinel(root string, i provider.Instance) string {
	return filepath.Join(root, "machines", i.Token, "data", "data", "sentinel")
}

func readIfThere(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// bootsOf waits until the last start has been noted: the process may be there, and its first line not.
func bootsOf(root, token string) (int, error) {
	name := filepath.Join(root, "machines", token, "data", "data", "boots")
	var n int
	err := testproc.Poll(within, func() error {
		console, err := readIfThere(filepath.Join(root, "machines", token, "console.log"))
		if err != nil || !strings.HasSuffix(string(console), "on\n") {
			return fmt.Errorf("console of %q: %q, %w", token, console, errors.Join(err, errors.New("it is not on")))
		}
		text, err := readIfThere(name)
		n = strings.Count(string(text), "start\n")
		return err
	})
	return n, err
}

// inject takes the directory away: the disk is not mounted.
func inject(t *testing.T, root string, f machinetest.Fault) func() {
	if f != machinetest.Unavailable {
		return nil
	}
	away := root + " elsewhere"
	if err := os.Rename(root, away); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Rename(away, root); err != nil {
			t.Fatal(err)
		}
	}
}
