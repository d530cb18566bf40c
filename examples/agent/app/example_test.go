// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/agent/app"
	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/rollout/nodeagent"
)

// fewPods is a rule of a fleet.
type fewPods struct{}

func (fewPods) Validate(_ context.Context, c *app.Config) error {
	if c.MaxPods > 110 {
		return errors.New("maxPods must be at most 110")
	}
	return nil
}

// An agent with a rule and an updater of the fleet's own. agent check judges with the rule as agent run does.
func ExampleNewCommand() {
	updater, err := nodeagent.Exec{
		Observe: []string{"/opt/acme/update", "observe"}, Apply: []string{"/opt/acme/update", "apply"}, Verify: []string{"/opt/acme/update", "verify"},
	}.NewUpdater()
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "kubelet.yaml")
	text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 200\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	c := app.NewCommand(app.WithUpdater("acme", updater), app.WithValidator(fewPods{}))
	c.SetArgs([]string{"check", file})
	err = c.Execute()
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	fmt.Println(err)
	// Output: maxPods must be at most 110
}

// lines is a codec of a fleet whose objects hold "name: number" lines and no YAML document of a kubelet.
type lines struct{}

func (lines) Decode(key string, o configsync.Object) (*app.Config, lkg.Limits, error) {
	c := &app.Config{}
	for line := range strings.Lines(o.Data[key]) {
		if _, err := fmt.Sscanf(line, "pods: %d", &c.MaxPods); err != nil {
			return nil, lkg.Limits{}, fmt.Errorf("%s: want lines such as \"pods: 110\"", key)
		}
	}
	return c, lkg.Limits{}, nil
}

// An agent whose configs are in the fleet's own format.
func ExampleWithCodec() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "kubelet.conf")
	if err := os.WriteFile(file, []byte("pods: 200\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	c := app.NewCommand(app.WithCodec(lines{}), app.WithValidator(fewPods{}))
	c.SetArgs([]string{"check", file})
	err = c.Execute()
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	fmt.Println(err)
	// Output: maxPods must be at most 110
}

// Options that can't be used are one error, whatever the arguments are.
func ExampleNewCommand_wrongOptions() {
	c := app.NewCommand(app.WithUpdater("", nil))
	c.SetArgs([]string{"run", "--", "/usr/bin/kubelet"})
	fmt.Println(c.Execute())
	// Output: app.NewCommand: WithUpdater: name is required (such as "images"); WithUpdater: its argument is nil (leave the option out instead)
}
