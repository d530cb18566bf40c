// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belayproject/belay/examples/internal/agent/report"
)

// recorder is an agent that knows one rejected config.
type recorder struct {
	mu    sync.Mutex
	calls []string
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

var document = report.Document{Node: "node-7", Time: time.Date(2026, 11, 21, 0, 0, 0, 5, time.UTC), Agent: &report.Agent{PID: 1}}

func (r *recorder) Status(context.Context) (report.Document, error) { return document, nil }

func (r *recorder) ForgetBad(_ context.Context, uid string) error {
	r.note("forget %s", uid)
	if uid != "u1" {
		return fmt.Errorf("forgetting %q: nothing is held against it: %w", uid, fs.ErrNotExist)
	}
	return nil
}

func (r *recorder) UseLocal(_ context.Context, reason string) error {
	r.note("local %s", reason)
	return errors.New("recording: disk full")
}

// serve runs a server until the test ends, or until stop is called.
func serve(t *testing.T, dir string, a Agent) (stop func()) {
	t.Helper()
	s, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, a) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil after its context ended", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func dial(t *testing.T, dir string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCalls(t *testing.T) {
	dir, a := t.TempDir(), &recorder{}
	serve(t, dir, a)
	c := dial(t, dir)
	if got, err := c.Status(t.Context()); err != nil || !reflect.DeepEqual(got, document) {
		t.Errorf("Status = %+v, %v, want %+v", got, err, document)
	}
	if err := c.ForgetBad(t.Context(), "u1"); err != nil {
		t.Errorf("ForgetBad(u1) = %v", err)
	}
	err := c.ForgetBad(t.Context(), "u2")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `forgetting "u2": nothing is held against it`) {
		t.Errorf("ForgetBad(u2) = %v, want the agent's words and fs.ErrNotExist", err)
	}
	if err := c.UseLocal(t.Context(), "drill"); err == nil || err.Error() != "recording: disk full" {
		t.Errorf("UseLocal = %v, want the agent's words", err)
	}
	if want := []string{"forget u1", "forget u2", "local drill"}; !reflect.DeepEqual(a.calls, want) {
		t.Errorf("the agent was asked %q, want %q", a.calls, want)
	}
}

// A state directory whose name is longer than the address of a socket may be is no obstacle.
func TestLongDirectoryNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 100), strings.Repeat("e", 100))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	serve(t, dir, &recorder{})
	if _, err := dial(t, dir).Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheSocketIsItsOwnersAloneAndGoesAway(t *testing.T) {
	dir := t.TempDir()
	stop := serve(t, dir, &recorder{})
	info, err := os.Lstat(filepath.Join(dir, SocketName))
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket's mode is %v (%v), want srw-------", info.Mode(), err)
	}
	stop()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 0 {
		t.Errorf("after Run %v is left (%v), want nothing", list, err)
	}
	if _, err := Dial(t.Context(), dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial = %v, want ErrNotRunning", err)
	}
}

// An agent that was killed leaves its socket: a sub-command sees that nobody is there, and the next agent takes its place.
func TestASocketOfAKilledAgent(t *testing.T) {
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, SocketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := Dial(t.Context(), dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial = %v, want ErrNotRunning", err)
	}
	serve(t, dir, &recorder{})
	if _, err := dial(t, dir).Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestListenGivesUpCleanly(t *testing.T) {
	dir := t.TempDir()
	s, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Listen(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Listen in an absent directory = %v, want fs.ErrNotExist", err)
	}
}

// What is not the protocol is answered with an error and changes nothing.
func TestOtherRequestsChangeNothing(t *testing.T) {
	dir, a := t.TempDir(), &recorder{}
	serve(t, dir, a)
	c := dial(t, dir)
	for _, r := range []struct{ method, path, body string }{
		{http.MethodGet, pathForgetBad, ""}, {http.MethodPost, pathForgetBad, "{"}, {http.MethodPost, pathUseLocal, `{"node":"x"}`},
		{http.MethodPost, "/", "{}"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), r.method, "http://agent"+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Errorf("%s %s %q: status %d, want an error", r.method, r.path, r.body, resp.StatusCode)
		}
	}
	if len(a.calls) != 0 {
		t.Errorf("the agent was asked %q, want nothing", a.calls)
	}
}
