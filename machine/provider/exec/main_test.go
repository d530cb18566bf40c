// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package exec_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/exec"
	"github.com/belayproject/belay/machine/provider/local"
)

const within = 30 * time.Second

// TestMain is also the program: the first argument says which one.
func TestMain(m *testing.M) {
	program := programs()[first(os.Args[1:])]
	if program == nil {
		os.Exit(m.Run())
	}
	if err := program(context.Background(), os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// programs are what the test binary can be.
func programs() map[string]func(ctx context.Context, verb string) error {
	return map[string]func(ctx context.Context, verb string) error{
		"serve-local": serveLocal, "serve-memory": serveLoopback,
	}
}

// serveLocal is a program that makes processes.
func serveLocal(ctx context.Context, verb string) error {
	p, err := local.New(ctx, local.Options{Root: os.Getenv("DIR")})
	if err != nil {
		return err
	}
	if verb == "create" && os.Getenv("DIE") != "" {
		_, err := decodeAndCreate(ctx, p)
		if err == nil {
			err = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return err
	}
	return exec.Serve(ctx, p, verb, os.Stdin, os.Stdout)
}

func decodeAndCreate(ctx context.Context, p provider.Provider) (provider.Instance, error) {
	var r provider.CreateRequest
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		return provider.Instance{}, err
	}
	return p.Create(ctx, r)
}

// serveLoopback is a program that can only create and delete, and keeps nothing.
func serveLoopback(ctx context.Context, verb string) error {
	return exec.Serve(ctx, provider.Minimal(little{}), verb, os.Stdin, os.Stdout)
}

type little struct{}

func (little) Create(_ context.Context, r provider.CreateRequest) (provider.Instance, error) {
	return provider.Instance{Token: r.Token, Owner: r.Owner, Digest: r.Digest, State: provider.Pending}, nil
}

func (little) Delete(context.Context, provider.DeleteRequest) (provider.Progress, error) {
	return provider.Progress{Done: true, Stopped: true}, nil
}

// script is a program that keeps its request in DIR/VERB.in and does what DIR/VERB says.
const script = `cd "$DIR" && cat >"$1.in" && exec sh "./$1" <"$1.in"`

// hello answers "abilities" with everything.
const hello = `echo '{"protocol":1,"abilities":["create","get","list","delete","plan","update","validate","stop","reboot","adopt","capacity","console"]}'`

// scripted is a provider whose program does what the scripts say, by verb.
func scripted(t testing.TB, change func(o *exec.Options), scripts map[string]string) (provider.Provider, string) {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { killAll(t, "DIR="+dir) })
	all := map[string]string{"abilities": hello}
	for verb, text := range scripts {
		all[verb] = text
	}
	for verb, text := range all {
		if err := os.WriteFile(filepath.Join(dir, verb), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := exec.Options{Path: "/bin/sh", Args: []string{"-c", script, "sh"}, Env: []string{"DIR=" + dir, "PATH=" + os.Getenv("PATH")}}
	if change != nil {
		change(&o)
	}
	p, err := exec.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return p, dir
}

func request(n int) provider.CreateRequest {
	o := provider.Owner{Cluster: "c1", Name: fmt.Sprintf("m%d", n), UID: fmt.Sprintf("uid-%d", n), Incarnation: 1}
	d := provider.Desired{Config: []byte(`{"kind":"File"}`)}
	return provider.CreateRequest{Token: provider.Token(o.Cluster, o.UID, 1), Owner: o, Digest: d.Digest(), Desired: d}
}

func wantClass(t testing.TB, what string, err error, want provider.Class) {
	t.Helper()
	if got := provider.ClassOf(err); got != want {
		t.Errorf("%s: got class %q (%v), want %q", what, got, err, want)
	}
}

// killAll ends the processes that name a text.
func killAll(t testing.TB, text string) {
	t.Helper()
	err := testproc.Poll(within, func() error {
		left := testproc.Naming(text)
		for _, line := range left {
			var pid int
			if _, err := fmt.Sscanf(line, "process %d", &pid); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("processes are left: %q", left)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
