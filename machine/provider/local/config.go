// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

// APIVersion and KindName are those of a [Config].
const (
	APIVersion = "local.belay.dev/v1"
	KindName   = "LocalConfig"
)

// Config is what a machine of this provider is made of.
type Config struct {
	provider.Kind
	// Command is the program of the machine and its arguments. The program is looked for in PATH; a path is absolute, or
	// begins with "files/".
	Command []string `json:"command"`
	// Env is added to the environment. Names that begin with "BELAY_" are taken.
	Env map[string]string `json:"env,omitempty"`
	// Files are written below "files" in the directory of the machine, before it starts.
	Files []File `json:"files,omitempty"`
	// Disks are directories below "data" that outlive the machine. Without one there is "data".
	Disks []string `json:"disks,omitempty"`
	// Namespaces says whether the machine has PIDs, mounts and a host name of its own; "" is Auto.
	Namespaces Namespaces `json:"namespaces,omitempty"`
	// StopSignal asks the machine to end; "" is SIGTERM.
	StopSignal string `json:"stopSignal,omitempty"`
	// GraceSeconds is how long it may take to end, before it is killed: 1 to 3600; 0 is 10.
	GraceSeconds int64 `json:"graceSeconds,omitempty"`
	// ReloadSignal tells the program that its files have changed. With "" it is restarted instead. What the process of the
	// provider ignores since it was started, as SIGHUP under nohup, a program ignores too until it sets a handler, and a
	// shell can't.
	ReloadSignal string `json:"reloadSignal,omitempty"`
	// Offers are the versions that the program can run: others are refused before anything is touched.
	Offers Offers `json:"offers,omitzero"`
}

// A File is one of a machine.
type File struct {
	// Path is relative, without "..", and no other file's directory.
	Path    string `json:"path"`
	Content string `json:"content"`
	// Mode is octal; "" is "0644".
	Mode string `json:"mode,omitempty"`
}

// Namespaces says whether a machine has namespaces of its own, of PIDs, mounts and host name.
type Namespaces string

// Values of [Namespaces].
const (
	// Auto: where this process may make them, as root.
	Auto Namespaces = "Auto"
	// None: never.
	None Namespaces = "None"
	// Required: a machine without is no machine.
	Required Namespaces = "Required"
)

// Limits of a config.
const (
	maxFiles = 1 << 20 // bytes of all files together
	maxGrace = 3600
	maxDisks = 16
)

// temporaryMark is in the name of a file until it is whole.
const temporaryMark = ".belay-"

// signals that may be named.
var signals = []string{"SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGPWR"}

// Default fills in what was left open.
func (c *Config) Default() {
	if len(c.Disks) == 0 {
		c.Disks = []string{"data"}
	}
	if c.Namespaces == "" {
		c.Namespaces = Auto
	}
	if c.StopSignal == "" {
		c.StopSignal = "SIGTERM"
	}
	if c.GraceSeconds == 0 {
		c.GraceSeconds = 10
	}
}

// Validate returns an error that names the first field that can't be, and says no value of env or file. Defaults are
// filled in before.
func (c *Config) Validate() error {
	for _, check := range []func() error{c.checkCommand, c.checkEnv, c.checkFiles, c.checkDisks, c.checkStop, c.Offers.check} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkCommand() error {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return fmt.Errorf("command: it names no program")
	}
	for i, arg := range c.Command {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("command[%d]: it has a zero byte", i)
		}
	}
	program := c.Command[0]
	if !strings.Contains(program, "/") || filepath.IsAbs(program) {
		return nil
	}
	if path, found := strings.CutPrefix(program, "files/"); !found || !slices.ContainsFunc(c.Files, func(f File) bool { return f.Path == path }) {
		return fmt.Errorf("command[0]: %q is a relative path: want an absolute one, a name, or \"files/\" with one of the files", program)
	}
	return nil
}

func (c *Config) checkEnv() error {
	for name, value := range c.Env {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("env: %q is no name of a variable", name)
		case strings.HasPrefix(name, "BELAY_"):
			return fmt.Errorf("env: %q is taken: names must not begin with \"BELAY_\"", name)
		case strings.ContainsRune(value, 0):
			return fmt.Errorf("env: the value of %q has a zero byte", name)
		}
	}
	return nil
}

func (c *Config) checkFiles() error {
	size, seen := 0, map[string]bool{}
	for i, f := range c.Files {
		if !plainPath(f.Path) {
			return fmt.Errorf("files[%d].path: %q is not a plain relative path, as \"etc/kubelet.yaml\"", i, f.Path)
		}
		if seen[f.Path] {
			return fmt.Errorf("files[%d].path: %q is there twice", i, f.Path)
		}
		seen[f.Path] = true
		if _, err := f.mode(); err != nil {
			return fmt.Errorf("files[%d].mode: %q is none: want octal digits, 0400 to 0777, as \"0640\"", i, f.Mode)
		}
		size += len(f.Content)
	}
	for i, f := range c.Files {
		for dir := filepath.Dir(f.Path); dir != "."; dir = filepath.Dir(dir) {
			if seen[dir] {
				return fmt.Errorf("files[%d].path: %q is below %q, which is a file", i, f.Path, dir)
			}
		}
	}
	if size > maxFiles {
		return fmt.Errorf("files: they have %d bytes: want at most %d", size, maxFiles)
	}
	return nil
}

// plainPath reports whether a path stays below its directory and is written in the one shortest way.
func plainPath(p string) bool {
	return p != "." && len(p) < 200 && filepath.IsLocal(p) && filepath.Clean(p) == p && !strings.ContainsAny(p, "\x00\\") &&
		!strings.Contains(p, temporaryMark)
}

func (f File) mode() (uint32, error) {
	if f.Mode == "" {
		return 0o644, nil
	}
	mode, err := strconv.ParseUint(f.Mode, 8, 32)
	if err == nil && (mode < 0o400 || mode > 0o777) {
		err = strconv.ErrRange
	}
	return uint32(mode), err
}

func (c *Config) checkDisks() error {
	if len(c.Disks) > maxDisks {
		return fmt.Errorf("disks: there are %d: want at most %d", len(c.Disks), maxDisks)
	}
	for i, name := range c.Disks {
		if provider.CheckToken(name) != nil {
			return fmt.Errorf("disks[%d]: %q is no name: want lower case letters, digits and dashes, at most 63", i, name)
		}
		if slices.Contains(c.Disks[:i], name) {
			return fmt.Errorf("disks[%d]: %q is there twice", i, name)
		}
	}
	return nil
}

func (c *Config) checkStop() error {
	switch {
	case !slices.Contains([]Namespaces{Auto, None, Required}, c.Namespaces):
		return fmt.Errorf("namespaces: %q is none of Auto, None, Required", c.Namespaces)
	case !slices.Contains(signals, c.StopSignal):
		return fmt.Errorf("stopSignal: %q is none of %s", c.StopSignal, strings.Join(signals, ", "))
	case c.ReloadSignal != "" && !slices.Contains(signals, c.ReloadSignal):
		return fmt.Errorf("reloadSignal: %q is none of %s", c.ReloadSignal, strings.Join(signals, ", "))
	case c.GraceSeconds < 1 || c.GraceSeconds > maxGrace:
		return fmt.Errorf("graceSeconds: %d is not between 1 and %d", c.GraceSeconds, maxGrace)
	}
	return nil
}
