// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// parse reads a command line as the agent does.
func parse(t *testing.T, args ...string) *Run {
	t.Helper()
	r := &Run{}
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	r.AddFlags(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	r.Child = f.Args()
	return r
}

// line is a right command line, with the given flags after the others, so that they win.
func line(t *testing.T, more ...string) []string {
	t.Helper()
	init := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(init, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--node-name=n1", "--kubeconfig=/k", "--state-dir=/s", "--init-config=" + init, "--render=/run/belay/kubelet.conf",
	}
	return append(append(args, more...), "--", "/bin/sh", "-c", "true")
}

// flags lists the flags that err complains about.
func flags(err error) []string {
	var out []string
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			var fe *FlagError
			if errors.As(e, &fe) {
				out = append(out, fe.Flag)
			}
		}
	}
	return out
}

func TestARightCommandLine(t *testing.T) {
	r := parse(t, line(t)...)
	if err := r.Validate(); err != nil {
		t.Errorf("Validate = %v, want nil", err)
	}
	if want := []string{"/bin/sh", "-c", "true"}; !slices.Equal(r.Child, want) {
		t.Errorf("Child = %q, want %q", r.Child, want)
	}
	for _, source := range []string{"annotation", "legacy", "shadow", "none", "directory=/etc/belay"} {
		if err := parse(t, line(t, "--source="+source)...).Validate(); err != nil {
			t.Errorf("--source=%s: %v, want nil", source, err)
		}
	}
}

// R-CS-08: dynamic config is switched off by flags, and then needs neither state nor server.
func TestDynamicConfigIsOffByFlag(t *testing.T) {
	r := parse(t, line(t, "--source=none", "--state-dir=", "--kubeconfig=", "--node-name=")...)
	if err := r.Validate(); err != nil || r.Dynamic() || r.SwitchedOff() != "" {
		t.Errorf("Validate = %v, Dynamic = %t, SwitchedOff = %q, want nil, false and nothing", err, r.Dynamic(), r.SwitchedOff())
	}
	for _, source := range []string{"nodeconfig", "annotation", "shadow", "directory=/d"} {
		r := parse(t, line(t, "--source="+source, "--state-dir=", "--kubeconfig=", "--node-name=")...)
		if err := r.Validate(); err != nil || r.Dynamic() || r.Server() || r.Rollouts() || !strings.Contains(r.SwitchedOff(), "switched off here") {
			t.Errorf("%s without state: Validate = %v, Dynamic = %t, Server = %t, SwitchedOff = %q; want it off, and said so",
				source, err, r.Dynamic(), r.Server(), r.SwitchedOff())
		}
	}
}

// A wrong flag is named, with its value and what would be right.
func TestBadFlags(t *testing.T) {
	for _, c := range []struct {
		arg, want string // want is part of the text
		flags     []string
	}{
		{"--source=configmap", `--source="configmap": must be nodeconfig, annotation, legacy, shadow, directory=PATH or none`, []string{"source"}},
		{"--source=directory=etc", `--source="directory=etc": must name an absolute path`, []string{"source"}},
		{"--kubeconfig=", `--kubeconfig="": must name a file, because --source is nodeconfig`, []string{"kubeconfig"}},
		{"--source=legacy --kubeconfig=", `--kubeconfig="": must name a file, because --source is legacy`, []string{"kubeconfig"}},
		{"--node-name=", `--node-name="": must be the name of this node`, []string{"node-name"}},
		{"--state-dir=s", `--state-dir="s": must be an absolute path`, []string{"state-dir"}},
		{"--init-config=", `--init-config="": must name the config`, []string{"init-config"}},
		{"--init-config=/absent", `--init-config="/absent": must be a file or a directory that can be read: no such file`, []string{"init-config"}},
		{"--render=kubelet.conf", `--render="kubelet.conf": must be the absolute path`, []string{"render"}},
		{"--render=/s/kubelet.conf", `--render="/s/kubelet.conf": must not lie in --state-dir`, []string{"render"}},
		{"--key=", `--key="": must name an entry`, []string{"key"}},
		{"--crash-loop-threshold=11", `--crash-loop-threshold="11": must be between 0 and 10`, []string{"crash-loop-threshold"}},
		{"--crash-loop-threshold=-1", `must be between 0 and 10`, []string{"crash-loop-threshold"}},
		{"--min-trial=0", `--min-trial="0s": must be more than 0, such as 1m`, []string{"min-trial"}},
		{"--min-trial=48h", `must not be more than --max-trial, which is 24h0m0s`, []string{"min-trial", "default-trial"}},
		{"--default-trial=1s", `--default-trial="1s": must be between --min-trial and --max-trial, which are 1m0s and 24h0m0s`, []string{"default-trial"}},
		{"--probe-interval=2m", `--probe-interval="2m0s": must be less than 1m0s`, []string{"probe-interval"}},
		{"--probe-interval=-1s", `--probe-interval="-1s": must be more than 0, such as 10s`, []string{"probe-interval"}},
		{"--probe-timeout=0", `--probe-timeout="0s"`, []string{"probe-timeout"}},
		{"--backoff-min=2m", `must not be more than --backoff-max, which is 1m0s`, []string{"backoff-min"}},
		{"--retry-min=3m", `must not be more than --retry-max, which is 2m0s`, []string{"retry-min"}},
		{"--grace=0", `--grace="0s"`, []string{"grace"}},
		{"--source=shadow --kubeconfig=", `--kubeconfig="": must name a file, because --source is shadow`, []string{"kubeconfig"}},
		{"--hooks=hooks", `--hooks="hooks": must be an absolute path`, []string{"hooks"}},
		{"--hooks=/absent", `--hooks="/absent": must be a directory of hooks: no such file`, []string{"hooks"}},
		{"--verify-for=0", `--verify-for="0s": must be more than 0, such as 1m`, []string{"verify-for"}},
		{"--verify-every=-1s", `--verify-every="-1s"`, []string{"verify-every"}},
		{"--verify-within=1m", `--verify-within="1m0s": must be more than --verify-for, which is 1m0s`, []string{"verify-within"}},
		{"--apply-timeout=0", `--apply-timeout="0s"`, []string{"apply-timeout"}},
		{"--lease-duration=4s", `--lease-duration="4s": must be at least 5s`, []string{"lease-duration"}},
		{"--lease-namespace=A_b", `--lease-namespace="A_b": `, []string{"lease-namespace"}},
		{"--guard-policy=g", `--guard-policy="g": must be empty without --lease-namespace`, []string{"guard-policy"}},
		{"--health-url=localhost:10248", `--health-url="localhost:10248": must be an http or https address`, []string{"health-url"}},
	} {
		err := parse(t, line(t, strings.Fields(c.arg)...)...).Validate()
		if err == nil || !strings.Contains(err.Error(), c.want) || !slices.Equal(flags(err), c.flags) {
			t.Errorf("%s: %v (flags %q), want %q about %q", c.arg, err, flags(err), c.want, c.flags)
		}
	}
}

// A NodeShadow orders one thing, and hooks need what it takes to follow it.
func TestHooksBesideAKubelet(t *testing.T) {
	dir := t.TempDir()
	for _, verb := range []string{"observe", "apply", "verify"} {
		if err := os.WriteFile(filepath.Join(dir, verb), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r := parse(t, line(t, "--hooks="+dir)...)
	if err := r.Validate(); err != nil || !r.Rollouts() {
		t.Errorf("--hooks beside a kubelet: %v, takes part %t; want nil and true", err, r.Rollouts())
	}
	if u := r.Update(); u.Hooks != dir || u.NodeName != "n1" || u.Kubeconfig != "/k" || u.StateDir != "/s" || u.RetryMax != r.RetryMax {
		t.Errorf("Update = %+v, want what is of %+v about rollouts", u, r)
	}
	if parse(t, line(t)...).Rollouts() || !parse(t, line(t, "--source=shadow")...).Rollouts() {
		t.Error("who takes part without hooks is up to --source")
	}
	for _, c := range []struct {
		args  string
		flags []string
	}{
		{"--source=shadow", []string{"hooks"}},
		{"--source=none --kubeconfig=", []string{"kubeconfig"}},
		{"--source=none --state-dir=", []string{"state-dir"}},
	} {
		err := parse(t, line(t, append(strings.Fields(c.args), "--hooks="+dir)...)...).Validate()
		if !slices.Equal(flags(err), c.flags) {
			t.Errorf("%s: %v (flags %q), want one about %q", c.args, err, flags(err), c.flags)
		}
	}
}

// Builds that may judge a config differently have different versions, wherever the build's name comes from.
func TestVersionOf(t *testing.T) {
	build := func(module string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: module}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, c := range []struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		{"v1.2.3", build("v1.0.0", commit), "v1.2.3"},
		{"v0.0.0-master+$Format:%H$", build("v1.0.0"), "v1.0.0"},
		{"", build("v1.0.0"), "v1.0.0"},
		{"", build("(devel)", commit), "v0.0.0-0123456789ab"},
		{"", build("", commit, modified), "v0.0.0-0123456789ab-modified"},
		{"", build("(devel)"), "v0.0.0-unknown"},
		{"", nil, "v0.0.0-unknown"},
	} {
		if got := versionOf(c.linked, c.info); got != c.want {
			t.Errorf("versionOf(%q, %+v) = %q, want %q", c.linked, c.info, got, c.want)
		}
	}
}

func TestTheChildMustBeAProgram(t *testing.T) {
	for _, c := range []struct{ child, want string }{
		{"", "command after --: must be the program to supervise"},
		{"sh", `"sh" must be an absolute path`},
		{"/absent/kubelet", `"/absent/kubelet" must be a program that can be executed`},
		{"/etc", `"/etc" must be a program that can be executed`},
		{"/etc/passwd", `"/etc/passwd" must be a program that can be executed`},
	} {
		r := parse(t, line(t)...)
		r.Child = []string{c.child}
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("child %q: %v, want %q", c.child, err, c.want)
		}
	}
	r := parse(t, line(t)...)
	r.Child = nil
	if err := r.Validate(); !slices.Equal(flags(err), []string{"--"}) {
		t.Errorf("no child: %v, want an error about it", err)
	}
}

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	err := parse(t).Validate()
	want := []string{"init-config", "render", "--"}
	if got := flags(err); !slices.Equal(got, want) {
		t.Errorf("an empty command line is wrong in %q (%v), want %q", got, err, want)
	}
}

// What lies in the init directory and is not read is named; the config and the limits are read, and a single file has
// no others.
func TestFilesThatAreNotReadAreNamed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"kubelet", "kubelet.bak", "configTrialDuration", "crashLoopThreshold", "README"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("5"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := Defaults()
	for path, want := range map[string][]string{dir: {"README", "kubelet.bak"}, filepath.Join(dir, "README"): nil, filepath.Join(dir, "absent"): nil, "": nil} {
		l.InitConfig = path
		if got := l.IgnoredInit(); !slices.Equal(got, want) {
			t.Errorf("of %q not read is %q, want %q", path, got, want)
		}
	}
}
