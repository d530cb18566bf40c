// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/systemdenv"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/tier"
)

// The environment in which the programs' names come to the copy of the test that runs under systemd.
const (
	envAgent   = "BELAY_TEST_AGENT"
	envKubelet = "BELAY_TEST_KUBELET"
)

// R-CS-20, R-CS-39, R-CS-42, C-01, C-07: the shipped unit under a real systemd. Restarts on request count against nobody; an agent that dies before it
// reads anything, again and again, is counted by its guard, and its config left; then it comes up on the local one.
func TestTheUnitUnderARealSystemd(t *testing.T) {
	tier.System(t, tier.Root, tier.Systemd)
	var env []string
	if os.Getenv(envAgent) == "" && os.Geteuid() == 0 {
		env = []string{envAgent + "=" + programs.Path(t, e2e.AgentPackage), envKubelet + "=" + programs.Path(t, e2e.FakeKubeletPackage)}
	}
	systemdenv.Run(t, env, underSystemd)
}

func underSystemd(t *testing.T, units string) {
	a := &e2e.Agent{Program: os.Getenv(envAgent), Port: testenv.Port(t), StateDir: "/run/state", Init: "/run/init.yaml", Render: "/run/r/kubelet.conf"}
	rules := []string{"--default-trial=1h", "--crash-loop-threshold=1"}
	a.Flags = append([]string{"--source=directory=" + units + "/wanted", "--probe-interval=100ms"}, rules...)
	a.Child = []string{os.Getenv(envKubelet), "--config", a.Render}
	a.WriteInit(t, a.Config(""))
	must(t, os.Mkdir(filepath.Join(units, "wanted"), 0o700))
	v1 := a.Config("maxPods: 42\n")
	must(t, os.WriteFile(filepath.Join(units, "wanted", "kubelet"), []byte(v1), 0o600))
	shipped(t, a, units, rules)

	reload(t, "start")
	var uid string
	e2e.Eventually(t, soon, "the wanted config is on trial", func() error {
		d, err := a.Status(t)
		if err != nil || d.Trial == nil {
			return fmt.Errorf("status %+v, %w", d.InUse, err)
		}
		uid = d.InUse.UID
		return nil
	})
	for range 3 {
		reload(t, "restart")
		e2e.Eventually(t, soon, "a restart on request leaves it on trial", func() error { return a.Uses(t, uid) })
	}
	dead := filepath.Join(units, "belay-agent.service.d", "90-dead.conf")
	must(t, os.WriteFile(dead, []byte("[Service]\nExecStart=\nExecStart=/bin/false\n"), 0o600))
	must(t, systemdenv.Systemctl(t, "daemon-reload"))
	must(t, systemdenv.Systemctl(t, "kill", "-s", "KILL", "--kill-who=main", "belay-agent.service"))
	e2e.Eventually(t, soon, "the guard leaves the config for the local one", func() error {
		if text, err := os.ReadFile(a.Render); err != nil || string(text) != a.Config("") {
			return fmt.Errorf("in place is %q, %w", text, err)
		}
		d, err := a.Status(t)
		if err == nil && (len(d.Rejected) != 1 || !strings.Contains(d.Rejected[0].Reason, "crash loop: 2 unexplained restarts, tolerated: 1")) {
			err = fmt.Errorf("rejected are %+v", d.Rejected)
		}
		return err
	})
	must(t, os.Remove(dead))
	reload(t, "restart")
	e2e.Eventually(t, soon, "the agent comes up on the local config", func() error { return a.Uses(t, "") })
	warned := func() bool {
		text, err := os.ReadFile(filepath.Join(units, "agent.log"))
		must(t, err)
		return strings.Contains(string(text), "Node would stay down") && strings.Contains(string(text), "it is clean, and Restart=on-failure")
	}
	if warned() {
		t.Error("the agent warns of the shipped unit")
	}
	must(t, os.WriteFile(dead, []byte("[Service]\nRestart=on-failure\n"), 0o600)) // C-07
	reload(t, "restart")
	e2e.Eventually(t, soon, "the agent warns of a unit that doesn't come back", func() error {
		if !warned() {
			return errors.New("there is no warning")
		}
		return nil
	})
	must(t, systemdenv.Systemctl(t, "stop", "belay-agent.service"))
}

// shipped writes the shipped unit, with the paths and the child of this machine.
func shipped(t *testing.T, a *e2e.Agent, units string, rules []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "systemd", "belay-agent.service"))
	must(t, err)
	text := strings.NewReplacer("/usr/local/bin/belay-agent", a.Program, "/var/lib/belay-agent", a.StateDir, "/etc/belay-agent/kubelet.yaml", a.Init,
		"/run/belay-agent/kubelet.conf", a.Render, "OOMScoreAdjust=-999", "").Replace(string(raw))
	must(t, os.WriteFile(filepath.Join(units, "belay-agent.service"), []byte(text), 0o600))
	guard := strings.Join(append([]string{a.Program, "guard", "--state-dir=" + a.StateDir, "--init-config=" + a.Init, "--render=" + a.Render}, rules...), " ")
	drop := "[Unit]\nDefaultDependencies=no\n[Service]\nRestartSec=100ms\nStandardError=append:" + units + "/agent.log\nStateDirectory=\nRuntimeDirectory=\n" +
		"ExecStartPre=\nExecStartPre=-" + guard + "\nExecStart=\nExecStart=" + a.Program + " " + strings.Join(a.Args(), " ") + "\n"
	must(t, os.MkdirAll(filepath.Join(units, "belay-agent.service.d"), 0o700))
	must(t, os.WriteFile(filepath.Join(units, "belay-agent.service.d", "50-test.conf"), []byte(drop), 0o600))
}

// reload has systemd read the units, and do that with the agent's.
func reload(t *testing.T, verb string) {
	t.Helper()
	must(t, systemdenv.Systemctl(t, "daemon-reload"))
	must(t, systemdenv.Systemctl(t, verb, "belay-agent.service"))
}
