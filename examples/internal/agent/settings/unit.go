// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
)

// Unit is what the commands of a systemd unit need to know that only note something.
type Unit struct {
	// StateDir is that of the agent.
	StateDir string
	// Timeout is the longest time that the command takes.
	Timeout time.Duration
}

// AddFlags adds the flags with their defaults.
func (u *Unit) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&u.StateDir, "state-dir", "", "directory for all state of the agent")
	addTimeout(f, &u.Timeout)
}

func addTimeout(f *pflag.FlagSet, d *time.Duration) {
	f.DurationVar(d, "timeout", 20*time.Second, "longest time that this takes: the unit is not to wait for a disk that hangs")
}

// Validate says what is wrong with the values, all of it, joined.
func (u *Unit) Validate() error {
	var p problems
	p.unit(u.StateDir, u.Timeout)
	return errors.Join(p...)
}

func (p *problems) unit(stateDir string, timeout time.Duration) {
	p.need(filepath.IsAbs(stateDir), "state-dir", stateDir, "must be an absolute path, such as /var/lib/belay-agent")
	p.positive("timeout", timeout, "20s")
}

// Guard is what the guard sub-command needs to know.
type Guard struct {
	Local
	// Render is the file that the main process reads its config from.
	Render string
	// KubeletRootDir is the root directory of the kubelet that is the main process; empty where its state files are left
	// alone.
	KubeletRootDir string
	// Timeout is the longest time that the command takes.
	Timeout time.Duration
}

// AddFlags adds the flags with their defaults, those of Local included.
func (g *Guard) AddFlags(f *pflag.FlagSet) {
	g.Local.AddFlags(f)
	addRender(f, &g.Render)
	f.StringVar(&g.KubeletRootDir, "kubelet-root-dir", "", "root directory of a kubelet that is the unit's main process, such as "+
		"/var/lib/kubelet: its state files go aside where they would stop a config; empty leaves them alone, as agent run moves them itself")
	addTimeout(f, &g.Timeout)
}

func addRender(f *pflag.FlagSet, path *string) {
	f.StringVar(path, "render", "", "file that the child reads its config from")
}

// Validate says what is wrong with the values, all of it, joined.
func (g *Guard) Validate() error {
	var p problems
	g.validate(&p)
	p.unit(g.StateDir, g.Timeout)
	p.files(&g.Local, g.Render)
	p.need(g.Prove.Command == "" || g.Prove.Timeout < g.Timeout, "prove-timeout", g.Prove.Timeout,
		fmt.Sprintf("must be less than --timeout, which is %s: a start waits for the program where its answer is lost", g.Timeout))
	return errors.Join(p...)
}
