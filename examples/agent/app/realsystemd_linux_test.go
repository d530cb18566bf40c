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
	"github.com/belayproject/belay/internal/testenv/binaries"
	"github.com/belayproject/belay/internal/tier"
)

// The environment in which the programs' names come to the copy of the test that runs under systemd.
const (
	envAgent   = "BELAY_TEST_AGENT"
	envStandIn = "BELAY_TEST_STAND_IN"
	envKubelet = "BELAY_TEST_KUBELET"
)

// agentUnit is the name of the shipped unit.
const agentUnit = "belay-agent.service"

// R-CS-20, R-CS-39, R-CS-42, C-01, C-07: the shipped unit under a real systemd; a real kubelet judges the configs.
// Restarts on request count against no config. An agent that dies before it reads anything, again and again, is counted
// by its guard. Where it dies under each config, no config is rejected. Where it dies under one alone, that one is.
func TestTheUnitUnderARealSystemd(t *testing.T) {
	tier.System(t, tier.Root, tier.Systemd)
	var env []string
	if os.Getenv(envAgent) == "" && os.Geteuid() == 0 {
		set, err := binaries.Ensure(t.Context(), os.Stderr, binaries.Kubelet)
		must(t, err)
		env = []string{
			envAgent + "=" + programs.Path(t, e2e.AgentPackage),
			envStandIn + "=" + programs.Path(t, e2e.FakeKubeletPackage),
			envKubelet + "=" + set[binaries.Kubelet],
		}
	}
	systemdenv.Run(t, env, underSystemd)
}

func underSystemd(t *testing.T, units string) {
	u := newUnit(t, units)
	defer u.logOnFailure()
	v1 := u.adopt("maxPods: 42\n")
	for range 3 {
		u.systemctl("restart")
		e2e.Eventually(t, soon, "a restart on request leaves it on trial", func() error { return u.onTrial(v1) })
	}
	u.diesUnderEachConfig(v1)
	u.diesUnderOneConfig()
	u.refusesAConfig()
	u.warnsOfItsUnit()
	must(t, systemdenv.Systemctl(t, "stop", agentUnit))
}

// A realUnit is the shipped one, of an agent that takes its config from the directory wanted.
type realUnit struct {
	*testing.T
	*e2e.Agent
	dir, wanted, log string
}

// deadly is in a config with which the stand-in for a kubelet kills the agent.
const deadly = "maxPods: 66\n"

// newUnit writes the unit, with the paths and the child of this machine. The prover is that of the defaults. The probes
// are those of a node without an API server.
func newUnit(t *testing.T, units string) *realUnit {
	t.Helper()
	u := &realUnit{
		T: t, dir: units, wanted: filepath.Join(units, "wanted"), log: filepath.Join(units, "agent.log"),
		Agent: &e2e.Agent{
			Program: os.Getenv(envAgent), Port: testenv.Port(t),
			StateDir: "/run/state", Init: "/run/init.yaml", Render: "/run/r/kubelet.conf",
		},
	}
	u.Child = []string{"/run/kubelet", "--config", u.Render}
	must(t, os.WriteFile(u.Child[0], []byte(u.kubelet()), 0o700))
	u.WriteInit(t, u.text(""))
	must(t, os.Mkdir(u.wanted, 0o700))
	must(t, os.WriteFile(filepath.Join(u.wanted, "minHealthyRun"), []byte("500ms"), 0o600))

	rules := []string{"--default-trial=1h", "--crash-loop-threshold=1"}
	u.Flags = []string{"--source=directory=" + u.wanted, "--probe-interval=100ms", "--prove-kubelet=auto"}
	u.Flags = append(u.Flags, rules...)
	raw, err := os.ReadFile(filepath.Join("..", "systemd", agentUnit))
	must(t, err)
	text := strings.NewReplacer(
		"/usr/local/bin/belay-agent", u.Program, "/var/lib/belay-agent", u.StateDir,
		"/etc/belay-agent/kubelet.yaml", u.Init, "/run/belay-agent/kubelet.conf", u.Render, "OOMScoreAdjust=-999", "",
	).Replace(string(raw))
	must(t, os.WriteFile(filepath.Join(units, agentUnit), []byte(text), 0o600))
	must(t, os.MkdirAll(filepath.Join(units, agentUnit+".d"), 0o700))
	guard := []string{u.Program, "guard", "--state-dir=" + u.StateDir, "--init-config=" + u.Init, "--render=" + u.Render}
	u.dropIn("50-test.conf", strings.Join([]string{
		"[Unit]", "DefaultDependencies=no",
		"[Service]", "RestartSec=100ms", "StateDirectory=", "RuntimeDirectory=",
		"StandardOutput=append:" + u.log, "StandardError=append:" + u.log,
		"ExecStartPre=", "ExecStartPre=-" + strings.Join(append(guard, rules...), " "),
		"ExecStart=", "ExecStart=" + u.Program + " " + strings.Join(u.Args(), " "), "",
	}, "\n"))
	return u
}

// kubelet is a script that runs a kubelet for the prover, and else the stand-in. With a config that is deadly the script
// kills the agent.
func (u *realUnit) kubelet() string {
	return fmt.Sprintf(`#!/bin/sh
[ "$1 $2" = "--config %s" ] || exec %s "$@"
! grep -q "%s" "$2" || kill -KILL $PPID
exec %s "$@"
`, u.Render, os.Getenv(envKubelet), strings.TrimSpace(deadly), os.Getenv(envStandIn))
}

// text is a config that kubelets of this machine take.
func (u *realUnit) text(more string) string { return u.Config("failCgroupV1: false\n" + more) }

// want puts a config into the directory and starts the unit anew, so that the agent looks at once.
func (u *realUnit) want(more string) {
	u.Helper()
	next := filepath.Join(u.dir, "next")
	must(u.T, os.WriteFile(next, []byte(u.text(more)), 0o600))
	must(u.T, os.Rename(next, filepath.Join(u.wanted, "kubelet")))
	u.systemctl("restart")
}

// adopt wants a config, waits until it is on trial, and returns its UID.
func (u *realUnit) adopt(more string) (uid string) {
	u.Helper()
	u.want(more)
	e2e.Eventually(u, soon, "the wanted config is on trial", func() error {
		d, err := u.Status(u)
		if err != nil {
			return err
		}
		if d.InUse == nil || d.InUse.UID == "" {
			return fmt.Errorf("in use is %+v, trouble %q", d.InUse, d.Trouble)
		}
		uid = d.InUse.UID
		return u.onTrial(uid)
	})
	return uid
}

// onTrial says, as an error, what is missing for a config to be used on trial.
func (u *realUnit) onTrial(uid string) error {
	if err := u.Uses(u, uid); err != nil {
		return err
	}
	d, err := u.Status(u)
	if err == nil && d.Trial == nil {
		err = errors.New("it is not on trial")
	}
	return err
}

// diesUnderEachConfig has the agent end before it reads anything, whatever its config. The guard leaves the config for
// the local one, and comes back to it: no config is to blame.
func (u *realUnit) diesUnderEachConfig(uid string) {
	u.Helper()
	u.dropIn("90-dead.conf", "[Service]\nExecStart=\nExecStart=/bin/false\n")
	must(u.T, systemdenv.Systemctl(u, "daemon-reload"))
	must(u.T, systemdenv.Systemctl(u, "kill", "-s", "KILL", "--kill-who=main", agentUnit))
	why := "failed to run current (UID: " + uid + "), deaths of the agent: 4, tolerated: 3"
	u.logs("using last-known-good (init): " + why)
	e2e.Eventually(u, soon, "the guard puts the local config in place", func() error {
		text, err := os.ReadFile(u.Render)
		if err == nil && string(text) != u.text("") {
			err = fmt.Errorf("in place is %q", text)
		}
		return err
	})
	u.logs("using current (UID: " + uid + "): not the config: " + why + "; also with (init)")
	u.dropIn("90-dead.conf", "")
	u.systemctl("restart")
	e2e.Eventually(u, soon, "the agent comes up and uses the config again", func() error { return u.onTrial(uid) })
	if d, err := u.Status(u); err != nil || len(d.Rejected) != 0 {
		u.Errorf("rejected are %+v (%v), want none: the agent died under each config", d.Rejected, err)
	}
}

// diesUnderOneConfig wants the config that kills the agent. It is left for the local one, tried once more when that has
// lived, and rejected.
func (u *realUnit) diesUnderOneConfig() {
	u.Helper()
	u.want(deadly)
	uid, why := u.rejection(1)
	if want := "failed to run current (UID: " + uid + "), deaths of the agent: 4, tolerated: 3"; why != want {
		u.Errorf("the config is rejected because it %s, want %s", why, want)
	}
	u.logs("using current (UID: " + uid + "): trying again: " + why)
	e2e.Eventually(u, soon, "the agent comes up on the local config", func() error { return u.Uses(u, "") })
}

// refusesAConfig wants a config that a kubelet refuses when it starts, and not before: the sandbox works below the unit.
// The config is rejected, and no start uses it.
func (u *realUnit) refusesAConfig() {
	u.Helper()
	u.want("cgroupRoot: /belay-missing\n")
	uid, why := u.rejection(2)
	if want := "failed to validate current (UID: " + uid + ")"; why != want {
		u.Errorf("the config is rejected because it %s, want %s", why, want)
	}
	if text, err := os.ReadFile(u.log); err != nil || strings.Contains(string(text), "using current (UID: "+uid+")") {
		u.Errorf("a start used config (UID: %s), which the kubelet refuses (%v)", uid, err)
	}
}

// rejection waits until that many configs are listed as bad, and returns the last one.
func (u *realUnit) rejection(n int) (uid, why string) {
	u.Helper()
	e2e.Eventually(u, soon, "a config is rejected", func() error {
		d, err := u.Status(u)
		if err != nil {
			return err
		}
		if len(d.Rejected) != n {
			return fmt.Errorf("rejected are %+v, trouble %q, want %d", d.Rejected, d.Trouble, n)
		}
		uid, why = d.Rejected[0].UID, d.Rejected[0].Reason
		return nil
	})
	return uid, why
}

// warnsOfItsUnit checks that the agent says where its unit would stay down, and says nothing about the shipped one.
func (u *realUnit) warnsOfItsUnit() {
	u.Helper()
	const warning = "it is clean, and Restart=on-failure"
	if text, err := os.ReadFile(u.log); err != nil || strings.Contains(string(text), "Node would stay down") {
		u.Errorf("the agent warns of the shipped unit (%v)", err)
	}
	u.dropIn("90-dead.conf", "[Service]\nRestart=on-failure\n") // C-07
	u.systemctl("restart")
	u.logs("Node would stay down")
	u.logs(warning)
}

// dropIn changes the unit, from the next time on that systemd reads it.
func (u *realUnit) dropIn(name, text string) {
	u.Helper()
	must(u.T, os.WriteFile(filepath.Join(u.dir, agentUnit+".d", name), []byte(text), 0o600))
}

// systemctl has systemd read the units, and do that with the agent's.
func (u *realUnit) systemctl(verb string) {
	u.Helper()
	must(u.T, systemdenv.Systemctl(u, "daemon-reload"))
	must(u.T, systemdenv.Systemctl(u, verb, agentUnit))
}

// logs waits until the unit's commands have written that.
func (u *realUnit) logs(text string) {
	u.Helper()
	e2e.Eventually(u, soon, "a command of the unit writes: "+text, func() error {
		log, err := os.ReadFile(u.log)
		if err == nil && !strings.Contains(string(log), text) {
			err = errors.New("it is not in the log")
		}
		return err
	})
}

// logOnFailure shows, where the test has failed, what the unit's commands wrote, what the agent knows, and what systemd
// says. It must be deferred: later no command can be run any more.
func (u *realUnit) logOnFailure() {
	if !u.Failed() {
		return
	}
	log, err := os.ReadFile(u.log)
	u.Logf("the unit's commands wrote (%v):\n%s", err, log)
	status, err := u.Command(u, "status", "--state-dir="+u.StateDir, "--init-config="+u.Init)
	u.Logf("the agent's status (%v):\n%s", err, status)
	u.Logf("systemd:\n%s", systemdenv.DescribeUnit(u, agentUnit))
}
