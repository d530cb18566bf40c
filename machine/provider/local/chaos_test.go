// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local_test

import (
	"bufio"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/local"
)

// A process that makes and deletes machines is killed 24 times, at random moments after it has deleted some, with several calls under way. In between no machine ever has two
// processes; in the end one that is wanted has exactly one, one that was destroyed has none, and what was retained has its data (R-MA-02, R-MA-24).
func TestKilledAtRandom(t *testing.T) {
	const each = 6
	kills := raceshare.Of(t, 24) // a child with the race detector takes its time to start
	tokens := (kills + 1) * each
	root, seed := newRoot(t), uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := config(t, func(c *local.Config) { c.GraceSeconds = 1 })
	for n := range kills {
		killSoon(t, order{Root: root, First: n * each, Drive: 2 * each, Seed: random.Uint64(), Config: c}, 1+random.IntN(3), time.Duration(random.IntN(50))*time.Millisecond)
		atMostOne(t, root, n)
	}
	p := open(t, local.Options{Root: root})
	lived, want := 0, map[string]int{}
	for n := range tokens {
		r := request(n, c)
		i, err := p.Create(t.Context(), r)
		switch {
		case provider.ClassOf(err) == provider.Conflict: // deleted for good, or before there was any
			remove(t, p, r, provider.Destroy)
		case err != nil:
			t.Errorf("Create of %q: %v", r.Token, err)
		case i.State == provider.Running:
			lived++
			want[r.Token] = 1
		default:
			remove(t, p, r, provider.Retain)
		}
	}
	if got := census(t, root); !maps.Equal(got, want) {
		t.Errorf("processes: got %v, want %v", got, want)
	}
	if t.Logf("%d of %d machines lived", lived, tokens); lived < kills/3 || lived > tokens-kills/3 {
		t.Errorf("%d of %d machines lived: want some, and not all", lived, tokens)
	}
	for n := range tokens {
		remove(t, p, request(n, c), provider.Destroy)
	}
	if left := testproc.Naming(root); len(left) > 0 {
		t.Errorf("after all was destroyed: %q", left)
	}
	if dirs, _ := filepath.Glob(filepath.Join(root, "machines", "*")); len(dirs) > 0 {
		t.Errorf("after all was destroyed: directories %q", dirs)
	}
}

// killSoon starts a child and kills it a moment after it has deleted so many machines.
func killSoon(t *testing.T, o order, deletions int, after time.Duration) {
	t.Helper()
	cmd := child(t, o)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range 1 + deletions { // the first line says that it begins
		if !lines.Scan() {
			t.Fatalf("child ended by itself: %v", lines.Err())
		}
	}
	timer := time.NewTimer(after)
	<-timer.C
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Fatalf("child ended by itself: %v", cmd.ProcessState)
	}
}

func atMostOne(t *testing.T, root string, round int) {
	t.Helper()
	for token, n := range census(t, root) {
		if n > 1 {
			t.Errorf("round %d: machine %q has %d processes", round, token, n)
		}
	}
}

// A process that is killed at each step of each call leaves what the same call goes on with: the data of a machine that is retained, adopted and
// started again is there at each of them (R-MA-24).
func TestDataSurvivesEachStep(t *testing.T) {
	root := newRoot(t)
	c := config(t, shell("cat data/data/sentinel >>console.seen; exec sleep 1000000"))
	for point := 0; ; point++ {
		p := open(t, local.Options{Root: root})
		r := request(1000+2*point, c)
		create(t, p, r)
		file := filepath.Join(dirOf(root, r), "data", "data", "sentinel")
		if err := os.WriteFile(file, []byte("sentinel"), 0o600); err != nil {
			t.Fatal(err)
		}
		remove(t, p, r, provider.Retain)
		next := request(1001+2*point, c)
		a := provider.AdoptRequest{From: provider.Ref{Token: r.Token}, As: next}
		died := run(t, order{Root: root, Call: callOf(a), Point: point})
		i, err := p.Abilities().Adopter.Adopt(t.Context(), a)
		if err != nil || i.State != provider.Running {
			t.Fatalf("point %d: got %+v, %v", point, i, err)
		}
		data, err := os.ReadFile(filepath.Join(dirOf(root, next), "data", "data", "sentinel"))
		if err != nil || string(data) != "sentinel" {
			t.Fatalf("point %d: data is %q, %v", point, data, err)
		}
		if want := []provider.Disk{{ID: r.Token + "/data"}}; !slices.Equal(i.Disks, want) {
			t.Errorf("point %d: got disks %v, want %v as they were", point, i.Disks, want)
		}
		wantProcesses(t, root, next, 1)
		remove(t, p, next, provider.Destroy)
		if dirs, _ := filepath.Glob(filepath.Join(root, "machines", "*")); len(dirs) > 0 {
			t.Fatalf("point %d: directories are left: %q", point, dirs)
		}
		if !died {
			if point < 5 {
				t.Fatal(fmt.Errorf("an Adopt has %d steps, want more", point))
			}
			return
		}
	}
}
