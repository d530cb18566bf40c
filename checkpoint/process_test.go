// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The test binary runs itself for what needs another process; the environment says as what.
const (
	roleVar = "BELAY_CHECKPOINT_TEST_ROLE"
	dirVar  = "BELAY_CHECKPOINT_TEST_DIR"
)

func TestMain(m *testing.M) {
	roles := map[string]func(dir string) error{"hold": hold, "hold-with-child": holdWithChild, "child": waitForInput, "write": writeForever}
	role := roles[os.Getenv(roleVar)]
	if role == nil {
		os.Exit(m.Run())
	}
	if err := role(os.Getenv(dirVar)); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// hold keeps the store open until its standard input ends.
func hold(dir string) error {
	s, err := Open(dir, bare())
	if err != nil {
		return err
	}
	fmt.Println("open")
	err = waitForInput(dir)
	return errors.Join(err, s.Close())
}

// holdWithChild starts a child process while it holds the store, which outlives it.
func holdWithChild(dir string) error {
	s, err := Open(dir, bare())
	if err != nil {
		return err
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), roleVar+"=child")
	child.Stdin = os.Stdin
	if err := child.Start(); err != nil {
		return err
	}
	fmt.Println("open")
	err = errors.Join(child.Wait(), s.Close())
	return err
}

func waitForInput(string) error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// writeForever puts numbers and prints each one when it was acknowledged.
func writeForever(dir string) error {
	s, err := Open(dir, bare())
	if err != nil {
		return err
	}
	ctx := context.Background()
	last, err := number(ctx, s)
	if err != nil {
		return err
	}
	fmt.Println("open")
	for n := last + 1; ; n++ {
		if err := s.Put(ctx, "d/a", numbered(n)); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// numbered makes a payload that shows whether it is whole: its size depends on the number.
func numbered(n int) []byte {
	return []byte(strings.Repeat(strconv.Itoa(n)+" ", n%700+1))
}

func number(ctx context.Context, s *Store) (int, error) {
	got, err := s.Get(ctx, "d/a")
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	text, _, _ := strings.Cut(string(got), " ")
	n, err := strconv.Atoi(text)
	if err == nil && string(got) != string(numbered(n)) {
		err = fmt.Errorf("record of number %d is not what was put", n)
	}
	return n, err
}

// process is a running role.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	input io.Closer
}

func start(t *testing.T, role, dir string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+role, dirVar+"="+dir)
	out, err := cmd.StdoutPipe()
	check(t, err)
	in, err := cmd.StdinPipe()
	check(t, err)
	check(t, cmd.Start())
	p := &process{cmd: cmd, lines: bufio.NewScanner(out), input: in}
	if got := p.line(); got != "open" {
		t.Fatalf("process %q said %q, want open", role, got)
	}
	return p
}

func (p *process) line() string {
	if !p.lines.Scan() {
		return ""
	}
	return p.lines.Text()
}

// kill ends the process as a crash does, and returns the last line that it wrote.
func (p *process) kill(t *testing.T) (last string) {
	t.Helper()
	check(t, p.cmd.Process.Kill())
	for line := p.line(); line != ""; line = p.line() {
		last = line
	}
	if err := p.cmd.Wait(); err == nil {
		t.Fatal("the process ended by itself")
	}
	return last
}

// P3: one process at a time, and the other one is told which.
func TestSecondOpenerIsToldWhoHoldsTheStore(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "hold", dir)
	_, err := Open(dir, bare())
	var locked *lockedError
	if !errors.As(err, &locked) || !errors.Is(err, ErrLocked) || locked.PID != p.cmd.Process.Pid || locked.Dir != dir {
		t.Fatalf("Open beside process %d: got %v, want a lockedError that names it", p.cmd.Process.Pid, err)
	}
	r := openReader(t, dir)
	if _, err := r.List(t.Context(), ""); err != nil {
		t.Fatalf("a Reader beside another process: %v", err)
	}
	p.kill(t)
	openStore(t, dir, bare())
}

func TestSecondOpenerInTheSameProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, bare())
	_, err := Open(dir, bare())
	var locked *lockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Fatalf("Open twice: got %v, want a lockedError with process %d", err, os.Getpid())
	}
	mustClose(t, s)
	openStore(t, dir, bare())
}

// A child such as a supervised agent must not keep the lock of a parent that was killed.
func TestLockIsNotInheritedByChildren(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "hold-with-child", dir)
	check(t, p.cmd.Process.Kill())
	if _, err := p.cmd.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	openStore(t, dir, bare()) // the child lives: its input is still open
	check(t, p.input.Close())
}

// P1, R-CS-38: killed at any instant, no acknowledged record is lost, torn, or older than before.
func TestKilledWriterLosesNothing(t *testing.T) {
	dir := t.TempDir()
	kills := 60
	if testing.Short() {
		kills = 10
	}
	for i := range kills {
		p := start(t, "write", dir)
		for range i % 7 { // die at the start, and later
			p.line()
		}
		acknowledged := 0
		if last := p.kill(t); last != "" {
			n, err := strconv.Atoi(last)
			check(t, err)
			acknowledged = n
		}
		s := openStore(t, dir, bare())
		wantNoTemps(t, dir)
		got, err := number(t.Context(), s)
		if err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		if got < acknowledged || got > acknowledged+1 && acknowledged > 0 {
			t.Fatalf("kill %d: got number %d, acknowledged was %d", i, got, acknowledged)
		}
		d := s.books.findFolder("d")
		if d == nil && got == 0 {
			mustClose(t, s)
			continue
		}
		wantNoTemps(t, dir+"/d")
		for _, st := range s.books.sortStreams(d) {
			if len(st.aside) > 0 || len(st.gens) > 0 && !st.gens[0].verified {
				t.Fatalf("kill %d: a crash alone made damage: %+v", i, st.aside)
			}
		}
		mustClose(t, s)
	}
}
