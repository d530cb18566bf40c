// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/lkg"
)

// The test binary is its own child: role says as what it runs.
const role = "BELAY_RESTART_ROLE"

// patience bounds each wait of these tests; none takes nearly as long. On a mutant much of it may be waited for.
var patience = 60 * time.Second

func TestMain(m *testing.M) {
	r := os.Getenv(role)
	if os.Getenv("BELAY_MUTANT") != "" {
		patience = 2 * time.Second
	}
	if r == "" {
		os.Exit(m.Run())
	}
	kind, arg, _ := strings.Cut(r, " ")
	roles[kind](arg)
}

// roles are what a child can be. Each tells on its standard output that it is there.
var roles = map[string]func(arg string){
	"wait": func(string) {
		fmt.Println("up", os.Getpid())
		linger()
	},
	"stubborn": func(string) {
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("up", os.Getpid())
		linger()
	},
	"exit": func(arg string) {
		code, err := strconv.Atoi(arg)
		if err != nil {
			code = 99
		}
		fmt.Println("up", os.Getpid())
		os.Exit(code)
	},
	// lock says whether another child is still alive.
	"lock": func(arg string) {
		f, err := os.OpenFile(arg, os.O_CREATE|os.O_RDWR, 0o600)
		if err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		}
		fmt.Println("up", os.Getpid(), err)
		linger()
	},
	// family leaves a stubborn child of its own behind.
	"family": func(arg string) {
		c := self("stubborn")
		c.Stdout = os.Stdout
		if err := c.Start(); err != nil {
			fmt.Println("none", err)
			return
		}
		fmt.Println("up", c.Process.Pid)
		if arg == "leave" {
			return
		}
		linger()
	},
	// agent supervises a child until it is killed.
	"agent": func(string) {
		s, err := restart.NewSupervisor(restart.Options{Command: func(context.Context, lkg.Exit) (*exec.Cmd, error) {
			c := self("stubborn")
			c.Stdout = os.Stdout
			return c, nil
		}})
		if err == nil {
			err = s.Run(context.Background())
		}
		fmt.Println("ended", err)
	},
}

// linger keeps a child alive for longer than any test, and not much longer: a broken supervisor leaves it behind. An
// empty select would end it as a deadlock.
func linger() { <-time.After(5 * time.Minute) }

func self(r string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), role+"="+r)
	return c
}

// rig is a supervisor whose children write into one pipe.
type rig struct {
	*restart.Supervisor
	t      *testing.T
	out    *os.File
	lines  chan string   // what children write; closed when nobody holds the other end
	starts chan lkg.Exit // what each call of Command was told
	exits  chan ended
	cancel context.CancelFunc
	result chan error
}

type ended struct {
	lkg.Exit
	planned bool
	at      time.Time
}

// begin runs a supervisor whose n-th child has the n-th role, and the last one from then on. It stops it at the end of
// the test.
func begin(t *testing.T, o restart.Options, roles ...string) *rig {
	t.Helper()
	r := newRig(t)
	n := 0
	if o.Command == nil {
		o.Command = func(context.Context, lkg.Exit) (*exec.Cmd, error) {
			c := self(roles[min(n, len(roles)-1)])
			n++
			c.Stdout = r.out
			return c, nil
		}
	}
	command := o.Command
	o.Command = func(ctx context.Context, last lkg.Exit) (*exec.Cmd, error) {
		r.starts <- last
		return command(ctx, last)
	}
	o.OnExit = func(e lkg.Exit, planned bool) { r.exits <- ended{e, planned, time.Now()} }
	var err error
	if r.Supervisor, err = restart.NewSupervisor(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() { r.result <- r.Run(ctx) }()
	t.Cleanup(r.stop)
	return r
}

func newRig(t *testing.T) *rig {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		t: t, out: out, lines: make(chan string, 1000), starts: make(chan lkg.Exit, 1000), exits: make(chan ended, 1000),
		result: make(chan error, 1), cancel: func() {},
	}
	go func() {
		defer close(r.lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			r.lines <- s.Text()
		}
	}()
	return r
}

// stop ends the supervisor and sees that nobody is left who holds the pipe: no child, and no child of a child.
func (r *rig) stop() {
	r.cancel()
	if r.Supervisor != nil {
		if err := next(r.t, r.result); err != nil {
			r.t.Errorf("Run = %v, want nil", err)
		}
	}
	_ = r.out.Close()
	r.drained()
}

// drained waits until every writer of the pipe is gone.
func (r *rig) drained() {
	r.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case _, ok := <-r.lines:
			if !ok {
				return
			}
		case <-deadline:
			r.t.Fatal("a process that the supervisor started is still alive")
		}
	}
}

// up waits for the next child and returns its process ID and what else it has to say.
func (r *rig) up() (pid int, rest string) {
	r.t.Helper()
	line := next(r.t, r.lines)
	if _, err := fmt.Sscanf(line, "up %d", &pid); err != nil {
		r.t.Fatalf("a child says %q", line)
	}
	_, rest, _ = strings.Cut(strings.TrimPrefix(line, "up "), " ")
	return pid, rest
}

// running waits until PID tells a child, and returns it: a child may speak before the supervisor that has started it
// knows of it.
func (r *rig) running() (pid int) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		if pid = r.PID(); pid != 0 {
			return pid
		}
		if time.Now().After(deadline) {
			r.t.Fatal("PID tells no child, though there is one")
		}
	}
}

func next[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-c:
		if !ok {
			t.Fatal("nothing more comes")
		}
		return v
	case <-time.After(patience):
		t.Fatal("nothing came in time")
		panic("unreachable")
	}
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !os.IsNotExist(err)
	}
	defer func() { _ = f.Close() }()
	stat, err := io.ReadAll(f)
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// gone waits for the end of a process that was killed: it dies a little after the kill.
func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(patience); alive(pid); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is alive", pid)
		}
	}
}
