// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// The names of the checks.
const (
	checkSettings = "settings"
	checkState    = "state"
	checkAgent    = "agent"
	checkChild    = "child"
	checkRecords  = "records"
	checkBaseline = "baseline"
	checkSource   = "source"
	checkServer   = "server"
	checkRights   = "rights"
	checkConfig   = "config"
	checkProof    = "proof"
	checkTrial    = "trial"
	checkRestart  = "restart"
	checkClock    = "clock"
)

// Examine makes all checks. It is pure. A check that finds nothing wrong says so.
func Examine(f Facts) Report {
	var found []Finding
	for _, check := range []func(*Facts) []Finding{
		settings, state, agent, findChild, records, baseline, source, server, rights, config, proof, trial, restart, clock,
	} {
		found = append(found, check(&f)...)
	}
	return NewReport(found)
}

func fine(check, what string) []Finding {
	return []Finding{{Check: check, Level: OK, What: what}}
}

func one(check string, level Level, what, remedy string) []Finding {
	return []Finding{{Check: check, Level: level, What: what, Remedy: remedy}}
}

func settings(f *Facts) []Finding {
	var found []Finding
	for _, err := range f.Settings {
		found = append(found,
			one(checkSettings, Problem, err.Error(), "start the agent with that put right: as it is, it doesn't start")...)
	}
	return found
}

// durable are the file systems on which acknowledged records were shown to outlive power cuts, fleeting those that a
// boot empties.
var (
	durable  = [...]string{"ext4", "xfs", "btrfs"}
	fleeting = [...]string{"tmpfs", "ramfs"}
)

func state(f *Facts) []Finding {
	d := f.Dir
	switch {
	case d == nil && sourceless(f):
		return one(checkState, Note, "no state directory is given, and no source: the node keeps to its local config", "")
	case d == nil:
		return one(checkState, Problem,
			"no state directory is given: dynamic config is switched off here, whatever the source names",
			"give the agent a directory of its own, such as --state-dir=/var/lib/belay-agent")
	case errors.Is(d.Err, fs.ErrNotExist):
		return one(checkState, Problem, fmt.Sprintf("the state directory %q is not there: no agent has run with it", d.Path),
			"start the agent, or name the directory that it is started with")
	case d.Err != nil:
		return one(checkState, Unknown, fmt.Sprintf("the state directory can't be looked at: %v", d.Err),
			"run this as the user of the agent, usually root")
	case d.NotDir:
		return one(checkState, Problem, fmt.Sprintf("%q is not a directory", d.Path),
			"name a directory that belongs to the agent alone")
	}
	return stateIn(d)
}

// stateIn looks at a directory that is there.
func stateIn(d *Dir) []Finding {
	var found []Finding
	add := func(level Level, what, remedy string) {
		found = append(found, one(checkState, level, what, remedy)...)
	}
	if d.Mode&0o077 != 0 {
		add(Problem, fmt.Sprintf("others can get at the state directory %q, mode %04o: whoever writes there decides what this node runs", d.Path, d.Mode), "chmod 0700 "+d.Path)
	}
	if d.Foreign {
		add(Problem, fmt.Sprintf("the state directory %q belongs to another user", d.Path),
			"chown it to the user of the agent, usually root")
	}
	switch {
	case slices.Contains(fleeting[:], d.FileSystem):
		add(Problem, fmt.Sprintf("the state directory %q is on %s: a reboot forgets which configs are good and bad", d.Path,
			d.FileSystem), "put it on a disk, such as below /var/lib")
	case !slices.Contains(durable[:], d.FileSystem):
		add(Note, fmt.Sprintf("the state directory %q is on %s, where records were not shown to outlive a power cut", d.Path,
			named(d.FileSystem)), "prefer ext4, xfs or btrfs")
	}
	if found == nil {
		return fine(checkState, fmt.Sprintf("%q is private, and on %s", d.Path, d.FileSystem))
	}
	return found
}

func named(fileSystem string) string {
	if fileSystem == "" {
		return "a file system that is not known"
	}
	return fileSystem
}

func sourceless(f *Facts) bool { return f.Source == "" || f.Source == "none" }

func agent(f *Facts) []Finding {
	switch {
	case f.Running == nil:
		return nil
	case *f.Running:
		return fine(checkAgent, "it is running")
	default:
		return one(checkAgent, Problem,
			"no agent is running on the state directory: nobody adopts, watches or leaves a config",
			"systemctl start the agent's unit, and see its log")
	}
}

func restart(f *Facts) []Finding {
	u := f.Unit
	switch {
	case u == nil:
		return nil
	case u.Err != nil:
		return one(checkRestart, Unknown, fmt.Sprintf("the unit %q can't be looked at: %v", u.Name, u.Err),
			"see that whatever starts the agent also starts it again after exit status 0")
	case !u.Loaded:
		return one(checkRestart, Problem, fmt.Sprintf("there is no unit %q: nobody starts the agent", u.Name),
			"install the unit, or name the one that there is")
	}
	var found []Finding
	add := func(what, remedy string) { found = append(found, one(checkRestart, Problem, what, remedy)...) }
	if u.Restart != "always" {
		add(fmt.Sprintf("unit %q has Restart=%s: it stays down after an exit that was meant to bring another config", u.Name,
			u.Restart), "set Restart=always, as in examples/agent/systemd")
	}
	if u.Limited {
		add(fmt.Sprintf("unit %q is given up after some restarts: the node stays down where going back would help", u.Name),
			"set StartLimitIntervalSec=0")
	}
	if !u.Enabled {
		add(fmt.Sprintf("unit %q doesn't come with a boot", u.Name), "systemctl enable "+u.Name)
	}
	if found == nil {
		return fine(checkRestart, fmt.Sprintf("unit %q comes back from every exit and every boot", u.Name))
	}
	return found
}

func clock(f *Facts) []Finding {
	var found []Finding
	add := func(level Level, what, remedy string) {
		found = append(found, one(checkClock, level, what, remedy)...)
	}
	if e := f.Explanation; e != nil {
		if ahead := e.State.Current.At.Sub(f.Now); ahead > clockSlack {
			add(Problem,
				fmt.Sprintf("the assignment on record is %s ahead of the clock: the clock was set back", ahead.Round(clockSlack)),
				"set the clock; trials are not affected, as they go by healthy time, but times that people see are wrong")
		}
	}
	switch c := f.Clock; {
	case c == nil:
		return found
	case !c.Hardware:
		add(Note, "this machine has no clock that runs while it is off: times of records are wrong until the time is set",
			"run a time service early; nothing is decided by these times")
	}
	if c := f.Clock; c.Known && !c.Synchronized {
		add(Note, "the clock is not synchronized",
			"run a time service, such as chrony: certificates of the API server depend on it")
	}
	if found == nil {
		return fine(checkClock, "there is a hardware clock, and times on record are not ahead of it")
	}
	return found
}

// list joins names for people.
func list(names []string) string { return strings.Join(names, ", ") }
