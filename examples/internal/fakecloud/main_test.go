// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/providertest"
)

// childEnv makes this test binary the command.
const childEnv = "BELAY_FAKECLOUD_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func cloud(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	return cmd
}

func start(t *testing.T, dir string) (*exec.Cmd, provider.Provider, *providertest.Admin) {
	t.Helper()
	cmd := cloud(t, "--state", dir)
	_, url := testproc.Start(t, cmd)
	if !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("the first line is %q, want a URL on loopback", url)
	}
	p, err := providertest.New(providertest.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := providertest.NewAdmin(providertest.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return cmd, p, admin
}

func request() provider.CreateRequest {
	o := provider.Owner{Cluster: "c1", Name: "m1", UID: "1", Incarnation: 1}
	d := provider.Desired{Config: []byte(`{"apiVersion": "fake.belay.dev/v1", "kind": "FakeConfig"}`)}
	return provider.CreateRequest{Token: provider.Token("c1", "1", 1), Owner: o, Digest: d.Digest(), Desired: d}
}

// After SIGKILL, and after the cloud has killed itself in the middle of a call, another process has what was answered. SIGTERM ends it well.
func TestKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	r := request()
	first, p, _ := start(t, dir)
	i, err := p.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Process.Kill(), ended(first, syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	second, p, admin := start(t, dir)
	if got, err := p.Get(t.Context(), i.Ref()); err != nil || got.Owner != r.Owner || got.ProviderID != i.ProviderID {
		t.Errorf("after SIGKILL: got %+v, %v, want %+v", got, err, i)
	}
	if err := admin.Inject(t.Context(), providertest.Fault{Kind: providertest.KillAfter, Method: "Delete"}); err != nil {
		t.Fatal(err)
	}
	d := provider.DeleteRequest{Ref: i.Ref(), Cluster: "c1", Mode: provider.Destroy}
	if _, err := p.Delete(t.Context(), d); provider.ClassOf(err) != provider.Unavailable {
		t.Errorf("Delete by a cloud that kills itself: got %v, want Unavailable", err)
	}
	if err := ended(second, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	third, p, admin := start(t, dir)
	inventory, err := admin.Inventory(t.Context())
	if err != nil || inventory.Instances+inventory.Disks != 0 || inventory.UsedTokens != 1 {
		t.Errorf("got %+v, %v, want a used-up token alone", inventory, err)
	}
	if _, err := p.Create(t.Context(), r); provider.ClassOf(err) != provider.Conflict {
		t.Errorf("Create with a token that was used up: got %v, want Conflict", err)
	}
	if err := third.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := third.Wait(); err != nil {
		t.Errorf("after SIGTERM: got %v, want exit code 0", err)
	}
}

// ended waits for a process and says, as an error, if another thing than the signal has ended it.
func ended(cmd *exec.Cmd, signal syscall.Signal) error {
	err := cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != signal {
		return errors.New("it was not ended by " + signal.String() + ": " + cmd.ProcessState.String())
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// SIGTERM lets a call that runs come to its end.
func TestTermWaits(t *testing.T) {
	cmd, p, admin := start(t, t.TempDir())
	if err := admin.Inject(t.Context(), providertest.Fault{Kind: providertest.Latency, Method: "Create", Delay: 200 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	created := make(chan error, 1)
	go func() {
		_, err := p.Create(t.Context(), request())
		created <- err
	}()
	err := testproc.Poll(10*time.Second, func() error {
		faults, err := admin.Faults(t.Context())
		if len(faults) > 0 {
			return errors.New("the call has not come")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-created; err != nil {
		t.Errorf("Create: got %v, want it to be answered", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("got %v, want exit code 0", err)
	}
}

// What it can't do, it says, and ends with 1: an address that others reach, no directory, one that is in use.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	start(t, dir)
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{}, `"state" not set`},
		{[]string{"--state", t.TempDir(), "--listen", "0.0.0.0:0"}, "want a loopback IP"},
		{[]string{"--state", t.TempDir(), "--listen", ":0"}, "want a loopback IP"},
		{[]string{"--state", t.TempDir(), "--listen", "localhost"}, "missing port"},
		{[]string{"--state", dir}, "one server at a time"},
		{[]string{"--state", t.TempDir(), "more"}, `unknown command "more"`},
	} {
		out, err := cloud(t, row.args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), row.want) || !strings.HasPrefix(string(out), "fakecloud: ") {
			t.Errorf("%q: got %v and %q, want exit code 1 and %q", row.args, err, out, row.want)
		}
	}
}
