// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/belayproject/belay/examples/internal/agent/report"
	"github.com/belayproject/belay/internal/testenv"
)

// The commands of this module that tests run.
const (
	AgentPackage       = "github.com/belayproject/belay/examples/agent"
	FakeKubeletPackage = "github.com/belayproject/belay/examples/internal/e2e/fakekubelet"
)

// An Agent is one node's agent: its files, its flags, and, between Start and the end of the process, the process. Make
// it with [NewAgent], change the fields, then call Start, again and again if need be.
type Agent struct {
	// Program is the agent's file name.
	Program string
	// Node and Kubeconfig are the flags of those names; empty leaves them out.
	Node, Kubeconfig string
	// StateDir, Init and Render are the flags of those names.
	StateDir, Init, Render string
	// Flags are further flags; a later one wins.
	Flags []string
	// Child is the supervised command.
	Child []string
	// Port is where the child serves its health under configs that [Agent.Config] makes.
	Port int
}

// NewAgent prepares an agent with short times that supervises a fake kubelet. Its init config is a.Config("").
func NewAgent(t testing.TB, p *Programs, node, kubeconfig string) *Agent {
	t.Helper()
	dir := t.TempDir()
	a := &Agent{
		Program: p.Path(t, AgentPackage), Node: node, Kubeconfig: kubeconfig, Port: testenv.Port(t),
		StateDir: filepath.Join(dir, "state"), Init: filepath.Join(dir, "init.yaml"), Render: filepath.Join(dir, "run", "kubelet.conf"),
	}
	a.Child = []string{p.Path(t, FakeKubeletPackage), "--config", a.Render, "--root-dir", filepath.Join(dir, "kubelet")}
	a.Flags = []string{
		"--min-trial=500ms", "--default-trial=1500ms", "--crash-loop-threshold=1", "--probe-interval=100ms", "--probe-timeout=2s",
		"--backoff-min=100ms", "--backoff-max=500ms", "--retry-min=100ms", "--retry-max=6s", "--grace=5s",
		"--node-probes=false", // no fake kubelet has a Node
	}
	a.WriteInit(t, a.Config(""))
	return a
}

// Config is a kubelet config that has its health endpoint at a.Port, with more lines of YAML behind.
func (a *Agent) Config(more string) string {
	return fmt.Sprintf("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nhealthzPort: %d\n%s", a.Port, more)
}

// WriteInit makes text the init config.
func (a *Agent) WriteInit(t testing.TB, text string) {
	t.Helper()
	if err := os.WriteFile(a.Init, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Args are the arguments of the run sub-command.
func (a *Agent) Args() []string {
	args := []string{"run", "--state-dir=" + a.StateDir, "--init-config=" + a.Init, "--render=" + a.Render, "--prove-kubelet=none"}
	if a.Node != "" {
		args = append(args, "--node-name="+a.Node)
	}
	if a.Kubeconfig != "" {
		args = append(args, "--kubeconfig="+a.Kubeconfig)
	}
	args = append(args, a.Flags...)
	return append(append(args, "--"), a.Child...)
}

// Start starts the agent.
func (a *Agent) Start(t testing.TB) *Process {
	t.Helper()
	return Start(t, a.Program, a.Args()...)
}

// Command runs a sub-command to its end. The error holds what it wrote to its standard error.
func (a *Agent) Command(t testing.TB, args ...string) (stdout string, err error) {
	t.Helper()
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(t.Context(), a.Program, args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(problems.String()))
	}
	return out.String(), nil
}

// Status asks the status sub-command.
func (a *Agent) Status(t testing.TB) (d report.Document, err error) {
	t.Helper()
	text, err := a.Command(t, "status", "--state-dir="+a.StateDir, "--init-config="+a.Init, "--output=json")
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal([]byte(text), &d)
}

// Uses says, as an error, in what the running agent's config in use differs from uid; an empty uid is the local config.
func (a *Agent) Uses(t testing.TB, uid string) error {
	t.Helper()
	d, err := a.Status(t)
	switch {
	case err != nil:
		return err
	case d.InUse == nil:
		return errors.New("no agent is running, or it has not chosen a config yet")
	case d.InUse.UID != uid:
		return fmt.Errorf("in use is UID %q, want %q; ConfigOK is %+v, trouble %q", d.InUse.UID, uid, d.ConfigOK, d.Trouble)
	default:
		return nil
	}
}

// Promoted says, as an error, what is missing for uid to be in use and the last known good config.
func (a *Agent) Promoted(t testing.TB, uid string) error {
	t.Helper()
	if err := a.Uses(t, uid); err != nil {
		return err
	}
	d, err := a.Status(t)
	if err == nil && (d.LastKnownGood.UID != uid || d.Trial != nil) {
		err = fmt.Errorf("the last known good config is UID %q, the trial %+v; want UID %q and no trial", d.LastKnownGood.UID, d.Trial, uid)
	}
	return err
}

// Children lists the processes that run a.Child, wherever they hang, by their arguments.
func (a *Agent) Children(t testing.TB) []int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join(a.Child, "\x00") + "\x00"
	var pids []int
	for _, d := range dirs {
		line, err := os.ReadFile(filepath.Join(d, "cmdline"))
		if err != nil || string(line) != want {
			continue // it ended, or is another one
		}
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// NoChildren says, as an error, which children still run.
func (a *Agent) NoChildren(t testing.TB) error {
	t.Helper()
	if pids := a.Children(t); len(pids) > 0 {
		return fmt.Errorf("children still run: processes %v", pids)
	}
	return nil
}
