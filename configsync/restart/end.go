// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"errors"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/lkg"
)

// An End is how the main process of a systemd unit ended, in the words of systemd.exec(5) for ExecStopPost. Make it
// with [EndFromEnv].
type End struct {
	// Result is $SERVICE_RESULT, for example success, exit-code, signal, oom-kill or watchdog.
	Result string `json:"result"`
	// Code is $EXIT_CODE: exited, killed or dumped; empty if no main process ran.
	Code string `json:"code,omitempty"`
	// Status is $EXIT_STATUS: an exit status, or the name of a signal.
	Status string `json:"status,omitempty"`
}

// ErrNoEnd means that a process is not an ExecStopPost command: systemd told it nothing.
var ErrNoEnd = errors.New("restart: SERVICE_RESULT is not set: this is no ExecStopPost command of a systemd unit")

// EndFromEnv reads the variables that systemd sets for an ExecStopPost command. getenv is os.Getenv. The error is
// [ErrNoEnd]. What is longer than a word of systemd, or holds other characters, is replaced: it comes to stand in a
// node's status.
func EndFromEnv(getenv func(string) string) (End, error) {
	if err := option.CheckRequired("configsync/restart.EndFromEnv", "getenv", getenv, "os.Getenv"); err != nil {
		return End{}, err
	}
	e := End{Result: word(getenv("SERVICE_RESULT")), Code: word(getenv("EXIT_CODE")), Status: word(getenv("EXIT_STATUS"))}
	if e.Result == "" {
		return End{}, ErrNoEnd
	}
	return e, nil
}

// wordMax is more than the longest word that systemd uses, in bytes.
const wordMax = 32

func word(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '+':
			return r
		default:
			return '?'
		}
	}, s)
	return s[:min(len(s), wordMax)]
}

// exitExec is the status of a unit whose program systemd could not execute: EXIT_EXEC of systemd.exec(5).
const exitExec = "203"

// ofSupervisor says what the end of a main process is that supervises what is configured: a bad end takes the child
// along, and is no end of the child's own.
func (e End) ofSupervisor(asked bool, ran time.Duration) lkg.Exit {
	x := e.exit(asked, ran)
	if x.Kind == lkg.ExitCrash && x.Fault == "" {
		x.Fault, x.Signature = lkg.FaultSupervisor, "the supervisor ended: "+e.Code+" "+e.Status
	}
	return x
}

// exit says what the end is to package lkg. asked says that systemd was asked to stop the unit while its main process
// ran; then a process that didn't stop well was still stopped on request. ran is 0 where nobody knows how long it ran.
//
// A clean end that was not asked for is [lkg.ExitClean], also one by SIGTERM. The status with which systemd says that
// it could not execute the program is an [lkg.FaultNotExecuted].
func (e End) exit(asked bool, ran time.Duration) lkg.Exit {
	x := lkg.Exit{Detail: e.words(ran)}
	switch e.Result {
	case "exit-code", "signal", "core-dump", "watchdog", "oom-kill", "timeout", "protocol":
		x.Kind = lkg.ExitCrash
	case "success":
		if e.Code != "" {
			x.Kind = lkg.ExitClean
		}
	}
	switch {
	case asked:
		x.Kind, x.Detail = lkg.ExitPlanned, "stopped on request: "+x.Detail
	case e.Result == "exit-code" && e.Code == "exited" && e.Status == exitExec:
		x.Fault, x.Signature = lkg.FaultNotExecuted, "systemd could not execute the program"
	}
	return x
}

// words is one line for people.
func (e End) words(ran time.Duration) string {
	var b strings.Builder
	switch {
	case e.Code == "":
		b.WriteString("ended without a main process")
	case e.Code == "exited":
		b.WriteString("exit status " + e.Status)
	default:
		b.WriteString(e.Code + " by SIG" + e.Status)
	}
	if e.Result != "success" {
		b.WriteString(", systemd says " + e.Result)
	}
	if ran > 0 {
		b.WriteString(", after " + ran.Round(time.Millisecond).String())
	}
	return b.String()
}
