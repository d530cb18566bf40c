// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/local"
)

const (
	childEnv = "BELAY_LOCAL_TEST" // what a child of the test does, as JSON
	within   = 30 * time.Second
	cluster  = "c1"
)

// An order is what a child of the test does.
type order struct {
	Root  string            `json:"root"`
	Call  *machinetest.Call `json:"call,omitempty"`
	Point int               `json:"point,omitempty"`
	// Delete is called once, and its progress printed.
	Delete *provider.DeleteRequest `json:"delete,omitempty"`
	// Drive is how many machines are created and deleted at random until the child is killed, from First on.
	Drive  int    `json:"drive,omitempty"`
	First  int    `json:"first,omitempty"`
	Seed   uint64 `json:"seed,omitempty"`
	Config []byte `json:"config,omitempty"`
}

func TestMain(m *testing.M) {
	text := os.Getenv(childEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.do(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (o order) do(ctx context.Context) error {
	p, err := local.New(ctx, local.Options{Root: o.Root})
	if err != nil {
		return err
	}
	if o.Drive > 0 {
		return o.drive(ctx, p)
	}
	if o.Delete != nil {
		progress, err := p.Delete(ctx, *o.Delete)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(progress)
	}
	n := 0
	die := func(string) {
		if n == o.Point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // it takes a moment
		}
		n++
	}
	p.Steps(die)
	_ = o.Call.Do(ctx, p) // the one who has ordered it sees what has become of it
	die("replied")
	return nil
}

// drive makes and deletes machines at random, several at a time.
func (o order) drive(ctx context.Context, p *local.Provider) error {
	fmt.Println("driving") // until here it was only starting
	errs := make(chan error)
	for worker := range uint64(3) {
		go func() {
			random := rand.New(rand.NewPCG(o.Seed, worker))
			for {
				deleted, err := o.one(ctx, p, random)
				if err != nil {
					errs <- err
				}
				if deleted {
					fmt.Println("deleted")
				}
			}
		}()
	}
	return <-errs
}

func (o order) one(ctx context.Context, p *local.Provider, random *rand.Rand) (deleted bool, err error) {
	r := request(o.First+random.IntN(o.Drive), o.Config)
	switch random.IntN(16) {
	case 0:
		_, err = p.Delete(ctx, deletion(r, provider.Destroy))
		deleted = err == nil
	case 1:
		_, err = p.Delete(ctx, deletion(r, provider.Retain))
		deleted = err == nil
	default:
		_, err = p.Create(ctx, r)
	}
	if c := provider.ClassOf(err); c == provider.Conflict || c == provider.Unavailable {
		return false, nil // used up, or another one holds it
	}
	return deleted, err
}

// run runs a child and reports whether it was killed.
func run(t testing.TB, o order) (killed bool) {
	t.Helper()
	cmd := child(t, o)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("child: %v: %s", err, out)
	}
	return false
}

func child(t testing.TB, o order) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	return cmd
}

// newRoot returns a directory for machines. When the test ends, none of them must be left that was not deleted, and those that are left are killed.
func newRoot(t testing.TB) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killAll(t, root) })
	return filepath.Join(root, "machines of a lab")
}

// killAll ends the machines of a root that the test has left running.
func killAll(t testing.TB, root string) {
	t.Helper()
	err := testproc.Poll(within, func() error {
		for _, pid := range pids(root) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if left := testproc.Naming(root); len(left) > 0 {
			return fmt.Errorf("processes are left: %q", left)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// pids are the processes whose environment or arguments name a text.
func pids(text string) []int {
	var all []int
	for _, line := range testproc.Naming(text) {
		var pid int
		if _, err := fmt.Sscanf(line, "process %d", &pid); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// pidNaming waits until one process has a text in its environment or arguments. One that executes another program has neither for an instant.
func pidNaming(t testing.TB, text string) int {
	t.Helper()
	var found []int
	err := testproc.Poll(within, func() error {
		if found = pids(text); len(found) != 1 {
			return fmt.Errorf("processes that name %q: %v, want one", text, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

func open(t testing.TB, o local.Options) *local.Provider {
	t.Helper()
	p, err := local.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// config is a machine that sleeps.
func config(t testing.TB, change func(c *local.Config)) []byte {
	t.Helper()
	c := local.Config{Kind: provider.Kind{APIVersion: local.APIVersion, Kind: local.KindName}, Command: []string{"sleep", "1000000"},
		Namespaces: local.None, GraceSeconds: 2}
	if change != nil {
		change(&c)
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func shell(script string) func(c *local.Config) {
	return func(c *local.Config) { c.Command = []string{"/bin/sh", "-c", script} }
}

func request(n int, config []byte) provider.CreateRequest {
	o := provider.Owner{Cluster: cluster, Namespace: "ns", Name: fmt.Sprintf("m%d", n), UID: fmt.Sprintf("uid-%d", n), Incarnation: 1}
	d := provider.Desired{Config: config, Versions: provider.Versions{Kubelet: "v1.36.3"}}
	return provider.CreateRequest{Token: provider.Token(o.Cluster, o.UID, o.Incarnation), Owner: o, Digest: d.Digest(), Desired: d}
}

func deletion(r provider.CreateRequest, mode provider.Mode) provider.DeleteRequest {
	return provider.DeleteRequest{Ref: provider.Ref{Token: r.Token}, Mode: mode, Cluster: r.Owner.Cluster}
}

func create(t testing.TB, p provider.Provider, r provider.CreateRequest) provider.Instance {
	t.Helper()
	i, err := p.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func get(t testing.TB, p provider.Provider, r provider.CreateRequest) provider.Instance {
	t.Helper()
	i, err := p.Get(t.Context(), provider.Ref{Token: r.Token})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// remove deletes until that is done.
func remove(t testing.TB, p provider.Provider, r provider.CreateRequest, mode provider.Mode) provider.Progress {
	t.Helper()
	return finish(t, func() (provider.Progress, error) { return p.Delete(t.Context(), deletion(r, mode)) })
}

// finish makes a call until it is done.
func finish(t testing.TB, call func() (provider.Progress, error)) provider.Progress {
	t.Helper()
	var last provider.Progress
	err := testproc.Poll(within, func() error {
		var err error
		if last, err = call(); err == nil && !last.Done {
			err = fmt.Errorf("it is not done: %q", last.Message)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return last
}

func wantClass(t testing.TB, what string, err error, want provider.Class) {
	t.Helper()
	if got := provider.ClassOf(err); got != want {
		t.Errorf("%s: got class %q (%v), want %q", what, got, err, want)
	}
}

// dirOf is the directory of a machine, as its process is told.
func dirOf(root string, r provider.CreateRequest) string {
	return filepath.Join(root, "machines", r.Token)
}

// census counts the processes of each machine of a root, by token.
func census(t testing.TB, root string) map[string]int {
	t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, name := range environs {
		_, rest, marked := strings.Cut("\x00"+string(testproc.Environ(name)), "\x00BELAY_MACHINE_DIR="+filepath.Join(root, "machines")+"/")
		if token, _, whole := strings.Cut(rest, "\x00"); marked && whole {
			found[token]++
		}
	}
	return found
}

// wantProcesses checks how many processes a machine has.
func wantProcesses(t testing.TB, root string, r provider.CreateRequest, want int) {
	t.Helper()
	err := testproc.Poll(within, func() error {
		if got := census(t, root)[r.Token]; got != want {
			return fmt.Errorf("machine %q has %d processes, want %d", r.Token, got, want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func callOf(a provider.AdoptRequest) *machinetest.Call { return &machinetest.Call{Adopt: &a} }

// stat is a line of /proc/PID/stat.
func stat(name string, session int, start uint64) string {
	return fmt.Sprintf("42 (%s) S 1 42 %d 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 %d 1000 10 0\n", name, session, start)
}
