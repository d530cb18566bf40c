// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/demo/internal/fleet"
	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/nodetier"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/internal/tier"
)

// The end-to-end tests run the demo's binary as make does, and look for what it leaves behind.

const (
	runTimeout  = 5 * time.Minute // of one whole demo
	buildModule = "github.com/belayproject/belay/"
)

// dirVariable names the directory of the binaries, which TestMain makes and removes.
const dirVariable = "BELAY_DEMO_TEST_DIR"

// binaries are built once, by the first test that needs them.
var binaries = sync.OnceValues(func() (string, error) {
	dir := os.Getenv(dirVariable)
	return dir, e2e.Build(context.Background(), dir, buildModule+"examples/demo", buildModule+"examples/agent",
		buildModule+"examples/controller", buildModule+"internal/testenv/cmd/controlplane")
})

// shared is the cluster of somebody else. Its controller manager finishes the deletion of namespaces.
var shared = testenv.Shared{Options: testenv.Options{With: []testenv.Component{testenv.ControllerManager}}}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "belay-demo-test-")
	if err == nil {
		err = os.Setenv(dirVariable, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := shared.Main(m)
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// demo is one run of the binary, with a mark that all of its processes inherit and a directory for all of its files.
type demo struct {
	cmd       *exec.Cmd
	mark, tmp string
	out       *testproc.Buffer
	done      chan error
}

// startDemo starts the binary with args, in which BIN stands for the directory of the binaries.
func startDemo(t *testing.T, args ...string) *demo {
	t.Helper()
	dir, err := binaries()
	if err != nil {
		t.Fatalf("building: %v", err)
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "BIN", dir)
	}
	tmp, err := os.MkdirTemp("", "bd-") //nolint:usetesting // short: a kubelet makes sockets deep below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	d := &demo{mark: "BELAY_DEMO_TEST=" + rand.Text(), tmp: tmp, out: &testproc.Buffer{}, done: make(chan error, 1)}
	d.cmd = exec.Command(filepath.Join(dir, "demo"), args...)
	d.cmd.Env = append(os.Environ(), d.mark, "TMPDIR="+d.tmp)
	d.cmd.Stdout, d.cmd.Stderr = d.out, d.out
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { d.done <- d.cmd.Wait() }()
	t.Cleanup(func() { _ = d.cmd.Process.Kill() })
	return d
}

// wait returns the exit status and checks that nothing is left of the run.
func (d *demo) wait(t *testing.T) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	select {
	case <-d.done:
	case <-ctx.Done():
		t.Fatalf("the demo didn't end within %s; it wrote\n%s", runTimeout, d.out)
	}
	if left := testproc.Naming(d.mark); len(left) > 0 {
		t.Errorf("processes left behind: %q", left)
	}
	files, err := os.ReadDir(d.tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Errorf("left behind in the directory for temporary files: %s", f.Name())
	}
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(mounts, []byte(d.tmp)) {
		t.Errorf("mounts left behind below %s:\n%s", d.tmp, mounts)
	}
	return d.cmd.ProcessState.ExitCode()
}

// until waits until the output has a text.
func (d *demo) until(t *testing.T, text string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(runTimeout); !strings.Contains(d.out.String(), text); <-tick.C {
		if len(d.done) > 0 || time.Now().After(end) {
			t.Fatalf("%q was not written; the demo wrote\n%s", text, d.out)
		}
	}
}

// summary returns the rows of the last table by the name of their config, and what ConfigOK said, which stands below them.
func (d *demo) summary(t *testing.T) (rows map[string]string, said string) {
	t.Helper()
	_, table, ok := strings.Cut(d.out.String(), "What happened, on every node:\n")
	if !ok {
		t.Fatalf("no summary; the demo wrote\n%s", d.out)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows = map[string]string{}
	for _, line := range strings.Split(table, "\n")[1:] {
		text := strings.Join(strings.Fields(line), " ")
		if strings.HasPrefix(line, " ") {
			said += text + " "
		} else {
			name, _, _ := strings.Cut(text, " ")
			rows[name] = text
		}
	}
	return rows, said
}

// check asserts that the summary says of each config what must have happened.
func (d *demo) check(t *testing.T, count string) {
	t.Helper()
	rows, said := d.summary(t)
	for name, want := range map[string]string{
		"init": "init from disk settled " + count,
		"v1":   "v1 good adopted and promoted " + count,
		"v2":   "v2 undecodable refused " + count,
		"v3":   "v3 invalid refused " + count,
		"v4":   "v4 crashing rolled back " + count,
		"v5":   "v5 good adopted and promoted " + count,
	} {
		if !strings.HasPrefix(rows[name], want) {
			t.Errorf("summary of %s: got %q, want it to begin %q", name, rows[name], want)
		}
	}
	for _, want := range []string{
		"True: all checks passed", "False: failed to load current (UID: ", "False: failed to validate current (UID: ",
		"False: failed to run current (UID: ",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("summary: got %q, want it to have %q", said, want)
		}
	}
}

// TestDemoOnItsOwnControlPlane plays everything, with the API server down during the rollback: one ConfigMap for all nodes (R-CS-03), and
// a good config runs at the end of each kind of bad push (R-CS-04) without help from anywhere (R-CS-16).
func TestDemoOnItsOwnControlPlane(t *testing.T) {
	t.Parallel()
	playDemo(t, "--real-kubelet=no")
}

// TestDemoWithARealKubelet plays everything with a kubelet as its first node.
func TestDemoWithARealKubelet(t *testing.T) {
	tier.System(t, tier.Root, tier.Kubelet)
	nodetier.Require(t)
	if out := playDemo(t, "--real-kubelet=yes"); !strings.Contains(out, "The node belay-demo-1 is a real kubelet") {
		t.Errorf("output: no kubelet was run; got\n%s", out)
	}
}

// playDemo runs the demo on four nodes and a control plane of its own to its end, and returns what it wrote, without line breaks.
func playDemo(t *testing.T, args ...string) string {
	t.Helper()
	d := startDemo(t, append([]string{"--control-plane=BIN/controlplane -stdin -wait"}, args...)...)
	if code := d.wait(t); code != 0 {
		t.Fatalf("exit status: got %d, want 0; the demo wrote\n%s", code, d.out)
	}
	d.check(t, "4/4")
	out := strings.Join(strings.Fields(d.out.String()), " ") // lines are broken anywhere
	if !strings.Contains(out, "All nodes went back while the API server was down") || strings.Contains(out, "\x1b") {
		t.Errorf("output: want the rollback without the API server, and no control sequences without a terminal; got\n%s", d.out)
	}
	return out
}

// TestInterruptedDemoLeavesNothing stops the demo while it starts, while a config is on trial, and while the API server is down.
func TestInterruptedDemoLeavesNothing(t *testing.T) {
	moments := []interruption{{"without the API server", "The API server is stopped now", syscall.SIGINT}}
	if tier.RunsWhole(t) {
		moments = append(moments, interruption{"at the start", "Starting a control plane", syscall.SIGINT},
			interruption{"on trial", "on trial", syscall.SIGTERM})
	}
	interruptDemo(t, "no", moments)
}

// TestInterruptedDemoLeavesNoKubelet stops the demo while it starts, while a kubelet judges a config in its sandbox, and
// while a config is on trial, with a kubelet as its first node.
func TestInterruptedDemoLeavesNoKubelet(t *testing.T) {
	tier.System(t, tier.Root, tier.Kubelet)
	nodetier.Require(t)
	interruptDemo(t, "yes", []interruption{
		{"at the start", "Starting a control plane", syscall.SIGINT},
		{"while a kubelet judges", "Pushed: ConfigMap kubelet-v1", syscall.SIGINT},
		{"on trial", "on trial", syscall.SIGTERM},
	})
}

// An interruption is a signal that the demo gets when it has written something.
type interruption struct {
	name, when string
	signal     syscall.Signal
}

func interruptDemo(t *testing.T, kubelet string, interruptions []interruption) {
	t.Helper()
	for _, i := range interruptions {
		t.Run(i.name, func(t *testing.T) {
			d := startDemo(t, "--control-plane=BIN/controlplane -stdin -wait",
				"--nodes=2", "--trial=2s", "--real-kubelet="+kubelet)
			d.until(t, i.when)
			if err := d.cmd.Process.Signal(i.signal); err != nil {
				t.Fatal(err)
			}
			code, out := d.wait(t), d.out.String()
			if code != 1 || !strings.Contains(out, "demo: interrupted") || strings.Contains(out, "cleaning up:") {
				t.Errorf("exit status: got %d, want 1, why, and that nothing is left; the demo wrote\n%s", code, out)
			}
		})
	}
}

// TestDemoOnTheClusterOfAUser plays everything but the outage, after a run that was interrupted: nothing of either is left.
func TestDemoOnTheClusterOfAUser(t *testing.T) {
	kubeconfig := "--kubeconfig=" + shared.Env(t).Kubeconfig()
	for _, c := range []struct {
		name, when string
		code       int
	}{
		{"interrupted", "Pushed: ConfigMap kubelet-v1", 1},
		{"to the end", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := startDemo(t, kubeconfig, "--nodes=2", "--trial=1s", "--crash-loop-threshold=1")
			if c.when != "" {
				d.until(t, c.when)
				if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
					t.Fatal(err)
				}
			}
			if code := d.wait(t); code != c.code {
				t.Fatalf("exit status: got %d, want %d; the demo wrote\n%s", code, c.code, d.out)
			}
			if c.code == 0 {
				d.check(t, "2/2")
			}
			noObjects(t)
		})
	}
}

// TestDemoIsNotFooled plays with agents that do nothing, and with such that end: the demo must say what it did not see.
func TestDemoIsNotFooled(t *testing.T) {
	for _, c := range []struct{ name, agent, want string }{
		{"idle", "exec sleep 300", "belay-demo-2: not seen that its process runs init"},
		{"dead", "echo no luck; exit 3", "the agent of belay-demo-1 has ended: exit status 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			agent := filepath.Join(t.TempDir(), "agent")
			if err := os.WriteFile(agent, []byte("#!/bin/sh\n"+c.agent+"\n"), 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			d := startDemo(t, "--kubeconfig="+shared.Env(t).Kubeconfig(), "--nodes=2", "--trial=1s", "--step-timeout=3s", "--agent="+agent)
			if code := d.wait(t); code != 1 || !strings.Contains(d.out.String(), c.want) {
				t.Errorf("exit status: got %d, want 1 and %q; the demo wrote\n%s", code, c.want, d.out)
			}
			noObjects(t)
		})
	}
}

// noObjects asserts that the cluster of the user has nothing that carries a label of the demo, nor a name of it.
func noObjects(t *testing.T) {
	t.Helper()
	client, err := dynamic.NewForConfig(shared.Env(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []schema.GroupVersionResource{
		v1alpha1.NodeConfigsResource, {Version: "v1", Resource: "nodes"}, {Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "namespaces"},
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	} {
		found, err := client.Resource(r).List(t.Context(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // the definition of NodeConfigs is gone
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range found.Items {
			if _, labelled := o.GetLabels()[fleet.RunLabel]; labelled || strings.HasPrefix(o.GetName(), fleet.NodePrefix) {
				t.Errorf("left behind: %s %s", r.Resource, o.GetName())
			}
		}
	}
}
