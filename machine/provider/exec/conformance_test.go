// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/exec"
)

// A program in another language, which keeps instances as files, keeps every promise of a provider through the protocol (R-MA-08, R-MA-09).
func TestConformanceOfPython(t *testing.T) {
	python, err := osexec.LookPath("python3")
	if err != nil {
		t.Logf("there is no python3; TestConformanceOfGo is about the same protocol: %v", err)
		return
	}
	python = interpreter(python)
	dir := t.TempDir()
	open := func(ctx context.Context, more ...string) (provider.Provider, error) {
		return exec.New(ctx, exec.Options{Path: python, Args: []string{"-I", "-S", "testdata/files.py"}, Env: append([]string{"DIR=" + dir}, more...)})
	}
	if _, err := open(t.Context()); err != nil {
		t.Fatal(err)
	}
	conform(t, machinetest.Harness{
		Name:         "python through exec",
		New:          func(ctx context.Context) (provider.Provider, error) { return open(ctx) },
		Config:       []byte(`{"kind":"File"}`),
		OtherConfig:  []byte(`{"kind":"File","size":2}`),
		UnknownField: []byte(`{"kind":"File","colour":"red"}`),
		Updates:      []provider.Desired{{Config: []byte(`{"kind":"Renamed"}`)}, {Config: []byte(`{"kind":"File","size":2}`)}},
		Many:         -1, Wait: within, // a start of the program takes its time
		Inventory: func(context.Context) (machinetest.Inventory, error) { return inventory(dir) },
		Clean: func(context.Context) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "instances")), os.RemoveAll(filepath.Join(dir, "disks")))
		},
		Running: func(_ context.Context, ref provider.Ref) (bool, error) {
			i, err := file(dir, ref.Token)
			return i.State == provider.Running || i.State == provider.Pending, err
		},
		Boots: func(_ context.Context, ref provider.Ref) (int, error) {
			i, err := file(dir, ref.Token)
			return i.Boots, err
		},
		WriteSentinel: func(_ context.Context, i provider.Instance, data []byte) error {
			text, err := json.Marshal(string(data))
			return errors.Join(err, os.WriteFile(filepath.Join(dir, "disks", i.Disks[0].ID), text, 0o600))
		},
		ReadSentinel: func(_ context.Context, i provider.Instance) ([]byte, error) {
			var text string
			data, err := os.ReadFile(filepath.Join(dir, "disks", i.Disks[0].ID))
			if errors.Is(err, fs.ErrNotExist) {
				return nil, nil
			}
			if err == nil {
				err = json.Unmarshal(data, &text)
			}
			return []byte(text), err
		},
		Inject: func(f machinetest.Fault) func() {
			name := filepath.Join(dir, "faults", string(f))
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return func() { _ = os.Remove(name) } // LostReply removes itself
		},
	}, "OtherZoneIsConflict", "AdoptOfAliveMovesTags", "CreateSurvivesCrash", "DeleteSurvivesCrash", "DeleteAfterCrashedCreate", "UpdateSurvivesCrash",
		"AdoptSurvivesCrash", "ListReturnsMany")
	dyingCreate(t, dir, open)
}

// interpreter is the program itself, where its name is that of a script that looks for it.
func interpreter(python string) string {
	found, err := osexec.Command(python, "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return python
	}
	return strings.TrimSpace(string(found))
}

// dyingCreate has the program die at each step of a create, and asks again.
func dyingCreate(t *testing.T, dir string, open func(ctx context.Context, more ...string) (provider.Provider, error)) {
	before, err := inventory(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := range 5 { // two steps for each of two files, and one before the reply
		r := request(n)
		dying, err := open(t.Context(), fmt.Sprintf("DIE_CREATE=%d", n))
		if err != nil {
			t.Fatal(err)
		}
		_, err = dying.Create(t.Context(), r)
		wantClass(t, fmt.Sprintf("Create that dies at step %d", n), err, provider.Internal)
		if i, err := p.Create(t.Context(), r); err != nil || i.State != provider.Running || len(i.Disks) != 1 {
			t.Errorf("Create after it died at step %d: got %+v, %v", n, i, err)
		}
	}
	after, err := inventory(dir)
	if err != nil || after.Instances != before.Instances+5 || after.Disks != before.Disks+5 {
		t.Errorf("got %+v, %v, want 5 instances and disks more than %+v", after, err, before)
	}
}

type instanceFile struct {
	State provider.State `json:"state"`
	Boots int            `json:"boots"`
}

func file(dir, token string) (i instanceFile, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "instances", token))
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	}
	return i, errors.Join(err, json.Unmarshal(data, &i))
}

func inventory(dir string) (machinetest.Inventory, error) {
	var n machinetest.Inventory
	for _, name := range globbed(dir, "instances", "*") {
		if strings.HasSuffix(name, ".new") {
			continue // a program has died while it wrote
		}
		if i, err := file(dir, filepath.Base(name)); err != nil {
			return n, err
		} else if i.State != provider.Retained {
			n.Instances++
		}
	}
	n.Disks = len(globbed(dir, "disks", "*-disk"))
	return n, nil
}

func globbed(dir, kind, pattern string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, kind, pattern)) // the pattern is good
	return names
}

// A program in Go that serves another provider keeps the promises of that, processes on this host, as far as the protocol carries them.
func TestConformanceOfGo(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killAll(t, base) })
	dir := filepath.Join(base, "lab")
	open := func(ctx context.Context, more ...string) (provider.Provider, error) {
		return exec.New(ctx, exec.Options{Path: os.Args[0], Args: []string{"serve-local"}, Env: append([]string{"DIR=" + dir, "PATH=" + os.Getenv("PATH")}, more...)})
	}
	config := func(command string) []byte {
		return []byte(`{"apiVersion":"local.belay.dev/v1","kind":"LocalConfig","namespaces":"None","command":["sleep","` + command + `"]}`)
	}
	conform(t, machinetest.Harness{
		Name: "Go through exec",
		New:  func(ctx context.Context) (provider.Provider, error) { return open(ctx) },
		Crash: func(ctx context.Context, c machinetest.Call, point int) (bool, error) {
			if point > 0 || c.Create == nil {
				return point == 0, nil // one point, and for Create alone; the others are not begun
			}
			p, err := open(ctx, "DIE=1")
			if err != nil {
				return false, err
			}
			err = c.Do(ctx, p)
			return err != nil && provider.ClassOf(err) == provider.Internal, nil
		},
		Config: config("1000001"), OtherConfig: config("1000002"), Many: 10, Wait: within,
		Updates: []provider.Desired{{Config: config("1000001"), Versions: provider.Versions{Kubelet: "v1.36.4"}}, {Config: config("1000002")}},
		Inventory: func(context.Context) (machinetest.Inventory, error) {
			return machinetest.Inventory{Instances: len(globbed(dir, "machines", "*")) - retained(dir), Disks: len(globbed(dir, "machines", "*/data/*"))}, nil
		},
	}, "OtherZoneIsConflict", "CapacityHasNoEffect", "DeleteDoneMeansStopped", "RetainKeepsDisks", "RetainIsTheDefault", "AdoptBringsDisksBack",
		"AdoptOfAliveMovesTags", "RebootOncePerID", "CreateSurvivesLostReply", "DeleteSurvivesLostReply", "AdoptSurvivesLostReply", "StaleListIsNotNotFound",
		"StaleListMakesNoSecond", "StaleListHidesNothingFromDelete", "RateLimitIsRateLimited", "RateLimitSaysAfter", "OutageIsUnavailable",
		"RefusedCredentialsAreUnauthorized", "NoCapacityIsStockout", "NoCallWaits", "HangingCallsEndWithTheirCtx")
	if left := testproc.Naming(dir); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
}

func retained(dir string) (n int) {
	for _, name := range globbed(dir, "machines", "*/instance.json") {
		if data, _ := os.ReadFile(name); strings.Contains(string(data), `"phase": "Retained"`) {
			n++
		}
	}
	return n
}

// conform runs the suite and demands that exactly those rules are skipped.
func conform(t *testing.T, h machinetest.Harness, skips ...string) {
	t.Helper()
	if raceshare.Step(t) > 1 {
		t.Log("a thousand programs, and nothing of them is seen by the race detector: this is run once more without it")
		return
	}
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
