// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/lkg"
)

const init0 = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// state makes a state directory in which one config is rejected, and the options that go with it.
func state(t *testing.T) (dir string, o Options) {
	t.Helper()
	l := settings.Defaults()
	l.InitConfig = filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(l.InitConfig, []byte(init0), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, o = t.TempDir(), l.Options()
	store := open(t, dir)
	defer closing(t, store)
	tracker, err := lkg.NewTracker(t.Context(), store, lkg.Options{Version: o.Version})
	if err != nil {
		t.Fatal(err)
	}
	bad := lkg.Ref{Namespace: "ns", Name: "c", UID: "u1", Key: "kubelet", Digest: "sha256:1"}
	if err := errors.Join(tracker.Assign(t.Context(), bad), tracker.Reject(t.Context(), bad, "drill")); err != nil {
		t.Fatal(err)
	}
	return dir, o
}

func open(t *testing.T, dir string) *checkpoint.Store {
	t.Helper()
	store, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func closing(t *testing.T, store *checkpoint.Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// Reading takes no lock; a change does, and says who holds it.
func TestStatusReadsBesideAStore(t *testing.T) {
	dir, o := state(t)
	store := open(t, dir)
	defer closing(t, store)
	a, live, err := Open(t.Context(), dir, o)
	if err != nil || live {
		t.Fatalf("Open = %v, live %t, want a stopped node", err, live)
	}
	d, err := a.Status(t.Context())
	if err != nil || len(d.Rejected) != 1 || d.Rejected[0].UID != "u1" || d.Next.Local != "init" {
		t.Errorf("Status = %+v, %v, want u1 rejected and the init config next", d, err)
	}
	pid := strconv.Itoa(os.Getpid())
	err = a.ForgetBad(t.Context(), "u1")
	if !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), pid) {
		t.Errorf("ForgetBad beside a store = %v, want ErrLocked with this process's id", err)
	}
}

// R-CS-66: what is held against a config can be taken back without an agent, once.
func TestForgetBadWithoutAnAgent(t *testing.T) {
	dir, o := state(t)
	s := &Stopped{Dir: dir, Options: o}
	if err := s.ForgetBad(t.Context(), "u1"); err != nil {
		t.Fatal(err)
	}
	if d, err := s.Status(t.Context()); err != nil || len(d.Rejected) != 0 {
		t.Errorf("Status = %+v, %v, want nothing rejected", d, err)
	}
	if err := s.ForgetBad(t.Context(), "u1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ForgetBad again = %v, want fs.ErrNotExist", err)
	}
}

// Without the init config, records can be read and changed all the same; only what comes next is unknown.
func TestWithoutTheInitConfig(t *testing.T) {
	dir, _ := state(t)
	s := &Stopped{Dir: dir, Options: settings.Defaults().Options()}
	if err := s.UseLocal(t.Context(), "drill"); err != nil {
		t.Fatal(err)
	}
	d, err := s.Status(t.Context())
	if err != nil || d.Next.Unknown == "" || d.ConfigOK != nil || d.Assigned.Local == "" {
		t.Errorf("Status = %+v, %v, want the local config assigned and an unknown next start", d, err)
	}
}

func TestNoStateYet(t *testing.T) {
	s := &Stopped{Dir: filepath.Join(t.TempDir(), "absent"), Options: Options{}}
	if _, err := s.Status(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Status = %v, want fs.ErrNotExist", err)
	}
	if _, err := os.Stat(s.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Status the directory is there (%v): reading must make nothing", err)
	}
}
