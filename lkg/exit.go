// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"slices"
	"strings"
)

// An ExitKind is how a run ended.
type ExitKind string

// The kinds of exit. The zero value says that nothing is known.
const (
	exitUnknown ExitKind = ""        // nothing is known
	ExitClean   ExitKind = "Clean"   // status 0
	ExitPlanned ExitKind = "Planned" // stopped on request of the caller, such as a supervisor
	ExitCrash   ExitKind = "Crash"   // bad status, killed by a signal, out of memory, watchdog
	ExitCounted ExitKind = "Counted" // an earlier process has recorded this start: it is not recorded again
)

// A Fault is what ended a run, if it was not the process itself.
type Fault string

// The faults. The zero value is an end of the process's own: it counts against the config that was used.
const (
	// FaultNotExecuted means that the program could not be executed. It counts against no config.
	FaultNotExecuted Fault = "NotExecuted"
	// FaultEnvironment means that something failed that every config needs: the container runtime or the disk, say. It
	// counts against no config.
	FaultEnvironment Fault = "Environment"
	// FaultSupervisor means that the process which supervises the program died, and took the program with it.
	FaultSupervisor Fault = "Supervisor"
)

// Exit is how the previous run ended, as far as the caller knows. The zero value says that nothing is known.
type Exit struct {
	Kind   ExitKind
	Detail string // for people, for example "exit status 255"

	// Fault says what ended the run, if it was not the process itself. It explains nothing beside ExitPlanned.
	Fault Fault
	// Signature is equal for two ends with the same cause, and differs where the causes differ, as far as the caller can
	// tell: the exit status or signal, and the last error line without times, process IDs, counts and quoted values. It
	// may stand in the reason of a condition. Empty means unknown; an unknown signature equals no other.
	Signature string
	// Last are the last lines that the program wrote, for people: free of secrets, never compared. The Tracker keeps the
	// newest 20 of them, and 4 KiB.
	Last []string
	// Witnessed says that all that every config needs was asked at this end, and answered: the end is then no
	// [FaultEnvironment].
	Witnessed bool
}

// SystemdExit says how a unit's process ended, from SERVICE_RESULT, EXIT_CODE and EXIT_STATUS, which systemd gives to
// the commands of ExecStopPost. It is pure; any text is accepted, and what no version of systemd is known to say is
// exitUnknown.
//
// A process that systemd counts as successful and that a signal ended was told to stop: ExitPlanned. One that returned
// by itself is ExitClean, and counts unless somebody planned it, since systemd does not say who wanted it. A time-out
// counts as a crash: a start that never gets ready looks the same as a stop that hangs, and whoever stops on purpose
// calls [Tracker.PlanRestart] first. What is no fault of the process (it was not started, or systemd lacked resources)
// is unknown.
func SystemdExit(result, code, status string) Exit {
	e := Exit{Detail: systemdDetail(result, code, status)}
	switch result {
	case "success":
		e.Kind = systemdSuccess(code, status)
	case "exit-code", "signal", "core-dump", "watchdog", "oom-kill", "timeout", "protocol":
		e.Kind = ExitCrash
	}
	return e
}

// systemdSuccess tells a stop on request from a return. A broken pipe is a success for systemd, and no request.
func systemdSuccess(code, status string) ExitKind {
	switch {
	case code == "exited":
		return ExitClean
	case code == "killed" && (status == "TERM" || status == "INT" || status == "HUP"):
		return ExitPlanned
	case code == "killed" || code == "dumped":
		return ExitCrash
	default:
		return exitUnknown
	}
}

// systemdDetail puts the words together, each cut short: they come from an environment.
func systemdDetail(words ...string) string {
	var known []string
	for _, w := range words {
		if w = strings.ToValidUTF8(w[:min(len(w), 32)], ""); w != "" {
			known = append(known, w)
		}
	}
	if known == nil {
		return ""
	}
	return "systemd: " + strings.Join(known, " ")
}

// The bounds of the lines that are kept of an exit.
const (
	maxLines     = 20
	maxLineBytes = 4 << 10 // of all lines together
)

// boundLines keeps the newest lines, within the bounds.
func boundLines(lines []string) []string {
	lines = lines[max(0, len(lines)-maxLines):]
	for i, left := len(lines)-1, maxLineBytes; i >= 0; i-- {
		if left -= len(lines[i]); left < 0 {
			return slices.Clone(lines[i+1:])
		}
	}
	return slices.Clone(lines)
}
