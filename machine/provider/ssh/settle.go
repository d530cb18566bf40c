// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import "fmt"

// A verdict is what is to be done about a record.
type verdict int

const (
	settled  verdict = iota // nothing is under way
	underWay                // a step runs, or the host is away
	cut                     // a step is to be begun, or to be begun again
	failed                  // a step has failed
)

// Codes that scripts exit with, after sysexits(3), and that of timeout(1).
const (
	exitUsage       = 64
	exitUnavailable = 69
	exitTemporary   = 75
	exitNoRight     = 77
	exitConfig      = 78
	exitTimeout     = 124
)

// passes reports whether the trouble may be over the next time.
func passes(code int) bool { return code == exitUnavailable || code == exitTemporary }

// settle says what has become of a record by what is seen on the host. It has no effect: the record that it returns is not written yet.
func (r record) settle(a answer) (record, verdict) {
	switch r.Phase {
	case starting, updating, rebooting, halting, cleaning:
	default:
		return r, settled
	}
	if r.Phase == rebooting && a.boot != r.Boot {
		return r.rebooted()
	}
	s, ok := a.steps[r.Step.ID]
	switch {
	case r.Step.ID == "" || !ok || s.state == stepReady:
		return r, cut
	case s.state == stepRunning:
		return r, underWay
	case s.code != 0:
		return r.failed(s.code)
	}
	return r.succeeded(a)
}

func (r record) rebooted() (record, verdict) {
	r.Reboots = append(r.Reboots[:len(r.Reboots):len(r.Reboots)], r.Reboot)
	r.Reboots = r.Reboots[max(0, len(r.Reboots)-maxReboots):]
	r.Boot, r.Reboot, r.Message, r.Step = "", "", "", step{}
	if r.Config.Start == "" {
		r.Phase = running
		return r, settled
	}
	r.Phase, r.Step.Kind = starting, startStep
	return r, cut
}

func (r record) succeeded(a answer) (record, verdict) {
	switch r.Phase {
	case rebooting:
		r.Message = "the host has not gone down yet"
		return r, underWay
	case updating:
		created, from := r.Created, r.From
		r.spec, r.Next = *r.Next, nil
		r.Created, r.From = created, from
		r.Phase = running
	case halting:
		if a.held {
			// What Stop said is not so. It is run again.
			r.Step.ID, r.Message = "", "the stop script has succeeded, and a process of the machine still holds descriptor 8"
			return r, cut
		}
		r.Phase, r.Then = r.Then, ""
		if r.Phase == cleaning {
			r.Step, r.Message = step{Kind: cleanupStep}, ""
			return r, cut
		}
	case cleaning:
		r.Phase = free
	default:
		r.Phase = running
	}
	r.Step, r.Message = step{}, ""
	return r, settled
}

func (r record) failed(code int) (record, verdict) {
	r.Message = said(r.Step.Kind, code)
	switch r.Phase {
	case starting:
		if passes(code) {
			r.Step.ID = ""
			return r, failed
		}
		r.Phase = broken
	case updating:
		r.Phase, r.Next, r.Step = running, nil, step{}
	case rebooting:
		r.Phase, r.Boot, r.Reboot, r.Step = running, "", "", step{}
	case halting:
		r.Step.ID = ""
	case cleaning:
		r.Phase, r.Step = dirty, step{}
	}
	return r, failed
}

// said describes the end of a script. What it has printed is never part of it: that may be secret.
func said(k kind, code int) string {
	switch code {
	case exitTimeout:
		return fmt.Sprintf("the %s script has taken longer than timeoutSeconds (exit code %d)", k, code)
	case exitUsage, exitConfig:
		return fmt.Sprintf("the %s script says that the config is wrong (exit code %d)", k, code)
	case exitUnavailable, exitTemporary:
		return fmt.Sprintf("the %s script asks to be run again (exit code %d)", k, code)
	case exitNoRight:
		return fmt.Sprintf("the %s script has too few rights (exit code %d)", k, code)
	}
	return fmt.Sprintf("the %s script has failed with exit code %d", k, code)
}
