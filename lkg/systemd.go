// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import "strings"

// SystemdExit says how a unit's process ended, from SERVICE_RESULT, EXIT_CODE and EXIT_STATUS, which systemd gives to the
// commands of ExecStopPost. It is pure; any text is accepted, and what no version of systemd is known to say is ExitUnknown.
//
// A process that systemd counts as successful and that a signal ended was told to stop: ExitPlanned. One that returned by
// itself is ExitClean, and counts unless somebody planned it, since systemd does not say who wanted it. A time-out
// counts as a crash: a start that never gets ready looks the same as a stop that hangs, and whoever stops on purpose
// calls [Tracker.PlanRestart] first. What is no fault of the process (it was not started, or systemd lacked resources) is unknown.
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
		return ExitUnknown
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
