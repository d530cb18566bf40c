// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/belayproject/belay/checkpoint"
)

// addOne reads a number and returns the next one.
func addOne(old []byte) ([]byte, error) {
	n := 0
	if old != nil {
		var err error
		if n, err = strconv.Atoi(string(old)); err != nil {
			return nil, err
		}
	}
	return strconv.AppendInt(nil, int64(n+1), 10), nil
}

// Goroutines that count in one record lose no step.
func TestUpdateLosesNoWrite(t *testing.T) {
	s, err := checkpoint.Open(t.TempDir(), checkpoint.Options{Ballast: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const callers, each = 4, 5
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				if err := checkpoint.Update(t.Context(), s, "d/count", addOne); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := s.Get(t.Context(), "d/count")
	if want := strconv.Itoa(callers * each); err != nil || string(got) != want {
		t.Errorf("the record is %q (%v), want %s", got, err, want)
	}
}

// A change is made of what is there: nothing, an empty record, a record that another call wrote or
// deleted meanwhile.
func TestUpdateSeesWhatIsThere(t *testing.T) {
	s, err := checkpoint.Open(t.TempDir(), checkpoint.Options{Ballast: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := t.Context()
	var seen []string
	see := func(payload []byte, meanwhile func() error) func([]byte) ([]byte, error) {
		return func(old []byte) ([]byte, error) {
			seen = append(seen, fmt.Sprintf("%q %t", old, old == nil))
			if meanwhile != nil {
				run := meanwhile
				meanwhile = nil
				return payload, run()
			}
			return payload, nil
		}
	}
	boom := errors.New("boom")
	steps := []func() error{
		func() error { return checkpoint.Update(ctx, s, "a", see([]byte{}, nil)) },
		func() error { return checkpoint.Update(ctx, s, "a", see([]byte("b"), nil)) },
		func() error {
			return checkpoint.Update(ctx, s, "a", see([]byte("d"), func() error { return s.Put(ctx, "a", []byte("c")) }))
		},
		func() error {
			return checkpoint.Update(ctx, s, "a", see([]byte("e"), func() error { return s.Delete(ctx, "a") }))
		},
		func() error { return checkpoint.Update(ctx, s, "a", see(nil, nil)) },
		func() error { return checkpoint.Update(ctx, s, "a", see(nil, nil)) },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	want := []string{`"" true`, `"" false`, `"b" false`, `"c" false`, `"d" false`, `"" true`, `"e" false`, `"" true`}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("change was given\n%q, want\n%q", seen, want)
	}
	if _, err := s.Get(ctx, "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after an Update to nothing: %v, want no record", err)
	}
	err = checkpoint.Update(ctx, s, "a", func([]byte) ([]byte, error) { return []byte("x"), boom })
	if !errors.Is(err, boom) || !errors.Is(err, checkpoint.ErrNotWritten) {
		t.Errorf("an error of change: %v, want it, and ErrNotWritten", err)
	}
	if err := checkpoint.Update(ctx, s, "a", nil); !errors.Is(err, checkpoint.ErrNotWritten) {
		t.Errorf("no change: %v, want ErrNotWritten", err)
	}
}

const updateVar = "BELAY_CHECKPOINT_UPDATE"

// countInDir is a process of TestUpdateDirByTwoProcesses.
func countInDir(dir string, steps int) error {
	for range steps {
		err := checkpoint.UpdateDir(context.Background(), dir, checkpoint.Options{Ballast: -1}, "count", addOne)
		if err != nil {
			return err
		}
	}
	return nil
}

// The old and the new process of a plugin write to one store at the same time, and lose no step; a
// Reader looks on.
func TestUpdateDirByTwoProcesses(t *testing.T) {
	const steps = 8
	if dir := os.Getenv(updateVar); dir != "" {
		if err := countInDir(dir, steps); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := t.TempDir()
	var cmds []*exec.Cmd
	var outs []*bytes.Buffer
	for range 2 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestUpdateDirByTwoProcesses$", "-test.count=1")
		cmd.Env = append(os.Environ(), updateVar+"="+dir)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds, outs = append(cmds, cmd), append(outs, &out)
	}
	err := countInDir(dir, steps)
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a process: %v\n%s", err, outs[i])
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := checkpoint.OpenReader(dir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Get(t.Context(), "count")
	if want := strconv.Itoa(3 * steps); err != nil || string(got) != want {
		t.Errorf("the record is %q (%v), want %s", got, err, want)
	}
}

// A change that updates the same directory waits for itself: the context ends that, and nothing is
// written.
func TestUpdateDirWithinItself(t *testing.T) {
	dir, o := t.TempDir(), checkpoint.Options{Ballast: -1}
	var within error
	err := checkpoint.UpdateDir(t.Context(), dir, o, "count", func(old []byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		within = checkpoint.UpdateDir(ctx, dir, o, "count", addOne)
		return old, within
	})
	if !errors.Is(within, checkpoint.ErrLocked) || !errors.Is(err, checkpoint.ErrNotWritten) {
		t.Errorf("within: %v, around it: %v, want ErrLocked, and ErrNotWritten", within, err)
	}
}

// Where another process keeps the store open, UpdateDir waits as long as its context, and says by
// whom it is held.
func TestUpdateDirWaitsForTheLock(t *testing.T) {
	dir := t.TempDir()
	s, err := checkpoint.Open(dir, checkpoint.Options{Ballast: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	err = checkpoint.UpdateDir(ctx, dir, checkpoint.Options{Ballast: -1}, "count", addOne)
	for _, want := range []error{checkpoint.ErrLocked, checkpoint.ErrNotWritten, context.DeadlineExceeded} {
		if !errors.Is(err, want) {
			t.Errorf("held: %v, want it to match %q", err, want)
		}
	}
	done := make(chan error, 1)
	go func() {
		done <- checkpoint.UpdateDir(t.Context(), dir, checkpoint.Options{Ballast: -1}, "count", addOne)
	}()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("given up: %v", err)
	}
}
