// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/configsync"
	configapi "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// hookDir has programs of these names, each of which says that it declines.
func hookDir(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		text := "#!/bin/sh\necho '{\"reason\":\"ToldSo\",\"message\":\"It is told so.\"}'\nexit 10\n"
		testproc.WriteProgram(t, filepath.Join(dir, n), text)
	}
	return dir
}

// R-RO-23: hooks are found by name, and what is no hook but looks like one is refused.
func TestHooksAreFoundByName(t *testing.T) {
	dir := hookDir(t, "observe", "apply", "verify", "preflight", ".tool")
	if err := os.WriteFile(filepath.Join(dir, "README"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/does/not/exist", filepath.Join(dir, "revert")); err != nil {
		t.Fatal(err)
	}
	u, err := Hooks(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	attempt := nodeagent.Attempt{Key: "k", Revision: protocol.Revision{Name: "v2"}}
	var declined *nodeagent.DeclinedError
	if err := u.(nodeagent.Preflighter).Preflight(t.Context(), attempt); !errors.As(err, &declined) || declined.Reason != "ToldSo" {
		t.Errorf("preflight: %v, want the answer of the hook of that name", err)
	}
	if err := u.Revert(t.Context(), attempt); !errors.Is(err, nodeagent.ErrIrreversible) {
		t.Errorf("revert: %v, want none: its link leads nowhere", err)
	}
	for _, c := range []struct {
		dir, want string
	}{
		{hookDir(t, "observe", "verify"), "it has no program named apply"},
		{hookDir(t, "observe", "apply", "verify", "revrt"), `program "revrt" is no hook: must be named observe, apply, verify, prepare`},
		{filepath.Join(dir, "absent"), "no such file"},
	} {
		if _, err := Hooks(c.dir, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.dir, err, c.want)
		}
	}
}

// R-RO-33: a Revision stands for one ConfigMap with one content, or is refused with the field that is wrong.
func TestRevisionStandsForOneConfig(t *testing.T) {
	digest, other := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	revision := func(ref *configapi.ConfigMapRef) *v1alpha1.Revision {
		return &v1alpha1.Revision{ObjectMeta: metav1.ObjectMeta{Name: "v2"}, Spec: v1alpha1.RevisionSpec{Digest: digest, ConfigMapRef: ref}}
	}
	named := &configapi.ConfigMapRef{Namespace: "ns", Name: "config-v2", Key: "kubelet"}
	want := configsync.Spec{Namespace: "ns", Name: "config-v2", Key: "kubelet", Digest: digest}
	for _, ordered := range []string{"", digest} {
		if s, err := specOf(revision(named), ordered); err != nil || s != want {
			t.Errorf("ordered with digest %q: %+v, %v; want %+v", ordered, s, err, want)
		}
	}
	if named.Digest != "" {
		t.Error("the Revision was changed")
	}
	for _, c := range []struct {
		ref     *configapi.ConfigMapRef
		ordered string
		want    string
	}{
		{named, other, "has digest " + digest + ", want " + other},
		{nil, digest, "spec.configMapRef"},
		{&configapi.ConfigMapRef{Namespace: "ns", Name: "n", Digest: other}, digest, "digest: it must be that of the Revision"},
		{&configapi.ConfigMapRef{Name: "n"}, digest, "namespace"},
	} {
		if s, err := specOf(revision(c.ref), c.ordered); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v ordered with %s: %+v, %v; want %q", c.ref, c.ordered, s, err, c.want)
		}
	}
}

// R-ID-08: every --lease-duration that the agent takes makes a member.
func TestEveryLeaseDurationMakesAMember(t *testing.T) {
	for _, d := range []time.Duration{5 * time.Second, 40 * time.Second, 24 * time.Hour} {
		p, err := New(Options{Node: "n1", Config: &rest.Config{Host: "https://127.0.0.1:1"}, LeaseNamespace: "belay-agents", Lease: d})
		if err != nil {
			t.Fatal(err)
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"}}
		if _, err := p.member(t.Context(), node, func() {}); err != nil {
			t.Errorf("--lease-duration=%s: %v", d, err)
		}
	}
}

// still is a disk and an updater of a node on which nothing happens.
type still struct{ nodeagent.Updater }

func (still) Get(context.Context, string) ([]byte, error) { return nil, fs.ErrNotExist }

func (still) Put(context.Context, string, []byte) error {
	return errors.New("nothing is to be written")
}

func (still) Observe(context.Context) (nodeagent.Observation, error) {
	return nodeagent.Observation{Current: protocol.Revision{Name: "v1"}, BootID: "boot"}, nil
}

// away are the options of a Part whose API server can't be reached.
func away() Options {
	return Options{
		Node: "n1", Config: &rest.Config{Host: "https://127.0.0.1:1"}, Disk: still{}, Updater: still{}, LeaseNamespace: "belay-agents", Lease: time.Minute,
		RetryMin: time.Millisecond, RetryMax: 2 * time.Millisecond,
	}
}

// A Part that never reaches the API server waits, and ends with its context without an error.
func TestPartWaitsForTheServer(t *testing.T) {
	p, err := New(away())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Run(ctx); err != nil || ctx.Err() == nil {
		t.Errorf("Run returned %v (context: %v), want nil at the end of the context", err, ctx.Err())
	}
}

// R-RO-02: a shut door has no shadow behind it, and what was read before it was shut can't be written any more; each turn of it wakes the agent.
func TestDoor(t *testing.T) {
	p, err := New(away())
	if err != nil {
		t.Fatal(err)
	}
	d := newDoor()
	shadows, err := kube.NewShadows(dynamic.NewForConfigOrDie(p.config))
	if err != nil {
		t.Fatal(err)
	}
	shadow, err := kube.NewAgentShadow(shadows, p.o.Node, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.before(shadow)
	woken := func() bool {
		select {
		case <-d.changed:
			return true
		default:
			return false
		}
	}
	shut := func() {
		t.Helper()
		if _, _, err := d.Read(t.Context()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("reading behind a shut door: %v, want that there is no shadow", err)
		}
		if err := d.Store(t.Context(), nodeagent.Status{}, "1"); !errors.Is(err, nodeagent.ErrConflict) {
			t.Errorf("writing behind a shut door: %v, want a conflict", err)
		}
	}
	shut()
	if d.set(false); woken() {
		t.Error("the agent was woken by a door that was shut already")
	}
	if d.set(true); !woken() {
		t.Error("the agent was not woken when the door was opened")
	}
	if _, _, err := d.Read(t.Context()); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading behind an open door: %v, want that the server can't be reached", err)
	}
	if d.set(false); !woken() {
		t.Error("the agent was not woken when the door was shut")
	}
	shut()
}

// A failure of the guard or of the Lease is told, and looked at again; without anybody to be told it is returned.
func TestWhoIsToldTriesAgain(t *testing.T) {
	o, told := away(), 0
	o.Node = "Not_a_name" // no member can be made of it
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Told = func(error) {
		if told++; told == 3 {
			cancel()
		}
	}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"Not_a_name","uid":"u1"}}`)
	}))
	defer node.Close()
	o.Config = &rest.Config{Host: node.URL}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := &round{p, newDoor(), ctx.Done(), nil}
	if err := r.qualify(ctx); err != nil || told != 3 {
		t.Errorf("it was told %d times and ended with %v, want 3 times and nil", told, err)
	}
	p.o.Told = nil
	if err := r.qualify(t.Context()); err == nil || !strings.Contains(err.Error(), "Name") {
		t.Errorf("without anybody to be told: %v, want that the name is wrong", err)
	}
	if r.door.open.Load() {
		t.Error("the door is open")
	}
}
