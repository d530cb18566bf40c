// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// script makes a program of a shell script and returns the command that runs it.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plane.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o700); err != nil { //nolint:gosec // it must be executable
		t.Fatal(err)
	}
	return path + " with arguments"
}

const obedient = `trap 'exit 0' TERM
echo building "$@" >&2
echo getting ready
echo /path/of/kubeconfig
while read -r order; do
	case $order in
	stop) echo stopping; echo stopped;;
	start) echo started;;
	"kubelet n1 "*) echo 'kubelet ["/bin/kubelet","--root-dir=/a b"]';;
	"kubelet n2 "*) echo unsupported it needs root;;
	kubelet*) echo kubelet what;;
	esac
done
`

func TestPlaneObeys(t *testing.T) {
	var progress bytes.Buffer
	p, err := Start(t.Context(), script(t, obedient), &progress)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Kubeconfig(); got != "/path/of/kubeconfig" {
		t.Errorf("kubeconfig: got %q", got)
	}
	if err := errors.Join(p.StopServer(t.Context()), p.StartServer(t.Context()), p.Ended()); err != nil {
		t.Errorf("stop and start: got %v, want nil", err)
	}
	argv, err := p.Kubelet(t.Context(), "n1", "127.0.0.2")
	if want := []string{"/bin/kubelet", "--root-dir=/a b"}; err != nil || !slices.Equal(argv, want) {
		t.Errorf("Kubelet: got %q, %v; want %q", argv, err, want)
	}
	if _, err := p.Kubelet(t.Context(), "n2", "127.0.0.2"); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "it needs root") {
		t.Errorf("Kubelet where there can be none: got %v, want %v and why", err, ErrUnsupported)
	}
	if _, err := p.Kubelet(t.Context(), "n3", "127.0.0.2"); err == nil || errors.Is(err, ErrUnsupported) {
		t.Errorf("Kubelet with an answer that makes no sense: got %v, want an error", err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("Close: got %v, want nil", err)
	}
	if p.Ended() == nil {
		t.Error("Ended after Close: got nil, want an error")
	}
	if got := progress.String(); got != "building with arguments\n" {
		t.Errorf("progress: got %q", got)
	}
}

func TestStartGivesUp(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
		within           time.Duration
	}{
		{"it ends", "echo no such thing >&2; exit 7", "exit status 7", time.Minute}, // A shell may be slow to start on a busy machine.
		{"it says nothing", "trap 'exit 0' TERM; while :; do sleep 0.01; done", context.DeadlineExceeded.Error(), time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.within)
			defer cancel()
			_, err := Start(ctx, script(t, c.body), &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	if _, err := Start(t.Context(), "  ", &bytes.Buffer{}); err == nil {
		t.Error("an empty command: got nil, want an error")
	}
}

func TestOrderIsNotAnswered(t *testing.T) {
	p, err := Start(t.Context(), script(t, "echo /k; read -r order; exit 4\n"), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.StopServer(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 4") {
		t.Errorf("StopServer: got %v, want an error that says how the command ended", err)
	}
}
