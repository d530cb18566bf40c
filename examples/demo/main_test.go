// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFlagsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name, args, want string
	}{
		{"no cluster", "--agent=/bin/true", "give one of --kubeconfig and --control-plane"},
		{"two clusters", "--agent=/bin/true --kubeconfig=a --control-plane=b", "give one of --kubeconfig and --control-plane"},
		{"no agent", "--kubeconfig=a --agent=/nowhere/agent", `there is no agent at "/nowhere/agent"`},
		{"no agent beside it", "--kubeconfig=a", "build examples/agent, or give its path with --agent"},
		{"nodes", "--kubeconfig=a --agent=/bin/true --nodes=0", "--nodes must be 1 to 50, got 0"},
		{"trial", "--kubeconfig=a --agent=/bin/true --trial=10ms", "--trial must be 1s or more, got 10ms"},
		{"threshold", "--kubeconfig=a --agent=/bin/true --crash-loop-threshold=11", "must be 0 to 10, got 11"},
		{"timeout", "--kubeconfig=a --agent=/bin/true --step-timeout=1s", "--step-timeout must be more than --trial, got 1s"},
		{"kubelet", "--kubeconfig=a --agent=/bin/true --real-kubelet=maybe", `must be auto, yes or no, got "maybe"`},
		{"foreign kubelet", "--kubeconfig=a --agent=/bin/true --real-kubelet=yes", "--real-kubelet=yes needs --control-plane"},
		{"pause", "--kubeconfig=a --agent=/bin/true --pause=-1s", "--pause must not be negative, got -1s"},
		{"kubeconfig", "--kubeconfig=/nowhere/config --agent=/bin/true", `reading the kubeconfig "/nowhere/config"`},
		{"argument", "now", "unknown command"},
		{"no control plane", "fleet --controller=/bin/true", "give --control-plane"},
		{"few nodes", "fleet --controller=/bin/true --control-plane=b --nodes=9", "--nodes must be 10 to 2000, got 9"},
		{"no controller", "fleet --control-plane=b --controller=/nowhere/controller", `there is no controller at "/nowhere/controller"`},
		{"no controller beside it", "fleet --control-plane=b", "build examples/controller, or give its path with --controller"},
		{"fleet stays", "fleet --controller=/bin/true --control-plane=b --stay=-1s", "must not be negative, got 3s and -1s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			command := command()
			command.SetArgs(strings.Fields(c.args))
			err := command.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("demo %s: got %v, want an error with %q", c.args, err, c.want)
			}
		})
	}
}

// An agent takes a config only with status 0, and lists it as bad only with 65.
func TestCheckOfANodeProcessEndsWithItsAnswer(t *testing.T) {
	const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	dir := t.TempDir()
	for _, c := range []struct {
		name, content string
		status        int
	}{
		{"good", head + "maxPods: 30\n", 0},
		{"invalid", head + "imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 80\n", 65},
		{"undecodable", head + "maxPodz: 30\n", 65},
		{"absent", "", 1},
	} {
		file := filepath.Join(dir, c.name)
		if c.content != "" {
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		command := command()
		command.SetArgs([]string{"node-process", "--check", "--config=" + file})
		err := command.ExecuteContext(t.Context())
		if (err == nil) != (c.status == 0) || err != nil && exitStatus(err) != c.status {
			t.Errorf("%s: got %v, want exit status %d", c.name, err, c.status)
		}
	}
}

func TestNodeProcessIsHidden(t *testing.T) {
	var help strings.Builder
	c := command()
	c.SetOut(&help)
	c.SetArgs([]string{"--help"})
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(help.String(), "node-process") || !strings.Contains(help.String(), "--control-plane") {
		t.Errorf("help: got\n%s", help.String())
	}
}
