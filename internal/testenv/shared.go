// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"os"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/testenv/binaries"
)

// TB is the part of testing.TB that this package needs. It does not import testing, so that a command can start a
// control plane too.
type TB interface {
	Helper()
	Cleanup(func())
	Context() context.Context
	Name() string
	Error(args ...any)
	Fatal(args ...any)
	Skip(args ...any)
}

// skipWithoutServers skips a test that needs a real server where [binaries.ServersVariable] turns them off.
func skipWithoutServers(tb TB) {
	tb.Helper()
	if os.Getenv(binaries.ServersVariable) == "none" {
		tb.Skip(binaries.ServersVariable + "=none turns off the servers that this test needs")
	}
}

// EnsurePrograms returns the paths of servers that a test starts by itself. It builds what is missing.
func EnsurePrograms(tb TB, names ...binaries.Name) binaries.Set {
	tb.Helper()
	skipWithoutServers(tb)
	set, err := binaries.Ensure(tb.Context(), os.Stderr, names...)
	if err != nil {
		tb.Fatal("building servers:", err)
	}
	return set
}

// Start starts a control plane for one test and ends it with the test. Most packages want [Shared].
func Start(tb TB, options Options) *Env {
	tb.Helper()
	skipWithoutServers(tb)
	env, err := New(tb.Context(), options)
	if err != nil {
		tb.Fatal("starting the control plane:", err)
	}
	tb.Cleanup(func() {
		if err := env.Close(); err != nil {
			tb.Error("ending the control plane:", err)
		}
	})
	return env
}

// User is [Env.NewUser] for a test: what goes wrong ends it.
func (e *Env) User(tb TB, name string, groups ...string) *rest.Config {
	tb.Helper()
	config, err := e.NewUser(name, groups...)
	if err != nil {
		tb.Fatal(err)
	}
	return config
}

// Shared is one control plane for all tests of a package. It is started by the first test that asks for it, so
// that a run of pure tests alone starts none. The package declares one variable of it and a TestMain that calls
// [Shared.Main]. It must not be copied after first use.
type Shared struct {
	// Options are those of the control plane.
	Options Options

	once sync.Once
	env  *Env
	err  error
}

// Env returns the control plane and ends the test where it could not be started. A test that stops servers or
// changes what others rely on needs its own, from [Start].
func (s *Shared) Env(tb TB) *Env {
	tb.Helper()
	skipWithoutServers(tb)
	s.once.Do(func() { s.env, s.err = New(tb.Context(), s.Options) })
	if s.err != nil {
		tb.Fatal("starting the shared control plane:", s.err)
	}
	return s.env
}

// Main runs the tests, ends the control plane where one was started, and returns the exit code for os.Exit. The
// argument is a *testing.M. Informers may run in synctest bubbles of these tests.
func (s *Shared) Main(m interface{ Run() int }) int {
	LetBubblesIdle()
	code := m.Run()
	if s.env == nil {
		return code
	}
	if err := s.env.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "ending the shared control plane:", err)
		return max(code, 1)
	}
	return code
}
