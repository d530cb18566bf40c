// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/testenv"
)

func TestKilledAPIServerComesBackWithItsPortAndData(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	ctx := deadline(t, 2*time.Minute)
	maps := client(t, env.Config()).CoreV1().ConfigMaps("default")
	before, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func() error{
		"kill": env.APIServer().Kill,
		"stop": func() error { return env.APIServer().Stop(ctx) },
	} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if pid := env.APIServer().PID(); pid != 0 {
			t.Errorf("after %s the API server is process %d, want none", name, pid)
		}
		if _, err := maps.Get(ctx, "kept", metav1.GetOptions{}); err == nil {
			t.Errorf("after %s the API server still answers", name)
		}
		if err := env.APIServer().Pause(); !errors.Is(err, testenv.ErrNotRunning) {
			t.Errorf("pausing after %s: error %v, want ErrNotRunning", name, err)
		}
		if err := env.APIServer().Start(ctx); err != nil {
			t.Fatal(err)
		}
		after, err := maps.Get(ctx, "kept", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if after.UID != before.UID {
			t.Errorf("after %s and start the object has UID %q, want %q", name, after.UID, before.UID)
		}
	}
}

func TestPausedAPIServerAcceptsAndDoesNotAnswer(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	ctx := deadline(t, time.Minute)
	maps := client(t, env.Config()).CoreV1().ConfigMaps("default")
	if err := env.APIServer().Pause(); err != nil {
		t.Fatal(err)
	}
	if states := threadStates(t, env.APIServer().PID()); strings.Trim(states, "T") != "" {
		t.Errorf("the threads of a paused API server are in the states %q, want T for each: one that runs may still answer", states)
	}
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	if _, err := maps.List(short, metav1.ListOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call of a paused API server: error %v, want DeadlineExceeded", err)
	}
	if err := env.APIServer().Resume(); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("a call after Resume: %v", err)
	}
	if err := env.APIServer().Pause(); err != nil {
		t.Fatal(err)
	}
	if err := env.APIServer().Stop(ctx); err != nil {
		t.Errorf("stopping a paused API server: %v", err)
	}
}

func TestStartThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	_, err := testenv.New(t.Context(), testenv.Options{
		Args: map[testenv.Component][]string{testenv.APIServer: {"--no-such-flag"}},
	})
	if !errors.Is(err, testenv.ErrNotRunning) || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("starting with an unknown flag: error %v, want ErrNotRunning and the server's own words", err)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("the failed start left %q", left)
	}
}

func TestStartRefusesWhatIsNoServer(t *testing.T) {
	for name, options := range map[string]testenv.Options{
		"unknown":        {With: []testenv.Component{"kube-nothing"}},
		"no server":      {With: []testenv.Component{"pause"}},
		"always there":   {With: []testenv.Component{testenv.Etcd}},
		"twice":          {With: []testenv.Component{testenv.Kwok, testenv.Kwok}},
		"flags for none": {Args: map[testenv.Component][]string{testenv.Kwok: {"-v=2"}}},
	} {
		env, err := testenv.New(t.Context(), options)
		if err == nil {
			t.Errorf("%s: New accepted %+v", name, options)
			_ = env.Close()
		}
	}
}

func TestEveryServerListensOnLoopbackOnly(t *testing.T) {
	env := testenv.Start(t, testenv.Options{With: []testenv.Component{
		testenv.ControllerManager, testenv.Scheduler, testenv.Kwok,
	}})
	const loopback = "0100007F:" // 127.0.0.1 in the kernel's byte order
	for _, name := range []testenv.Component{
		testenv.Etcd, testenv.APIServer, testenv.ControllerManager, testenv.Scheduler, testenv.Kwok,
	} {
		addresses := listeners(t, env.Server(name).PID())
		if len(addresses) == 0 {
			t.Errorf("%s listens nowhere, want a port", name)
		}
		for _, a := range addresses {
			if !strings.HasPrefix(a, loopback) {
				t.Errorf("%s listens on %s, want loopback only", name, a)
			}
		}
	}
}

func TestAuditLogHoldsEventsWhereAPolicyIsGiven(t *testing.T) {
	env := testenv.Start(t, testenv.Options{
		AuditPolicy: "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n",
	})
	config := rest.AddUserAgent(env.Config(), "audited-client")
	if _, err := client(t, config).CoreV1().Nodes().List(deadline(t, 10*time.Second), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the call in the audit log", func() error {
		data, err := os.ReadFile(env.AuditLog())
		if err == nil && !strings.Contains(string(data), "audited-client") {
			err = fs.ErrNotExist
		}
		return err
	})
}

// threadStates are those of all threads of a process.
func threadStates(t *testing.T, pid int) string {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d threads, %v", len(files), err)
	}
	var states strings.Builder
	for _, file := range files {
		status, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "\nState:\t")
		states.WriteString(rest[:1])
	}
	return states.String()
}
