// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import "strings"

// A Class is the kind of evidence for which a config was rejected: few enough for a label of a metric.
type Class string

// The classes of evidence.
const (
	ClassUndecodable Class = "Undecodable" // it can't be decoded
	ClassInvalid     Class = "Invalid"     // it does not pass the checks
	ClassCrashLoop   Class = "CrashLoop"   // more unexplained starts than its threshold
	ClassUnhealthy   Class = "Unhealthy"   // a required probe failed for too long
	ClassRequest     Class = "Request"     // somebody outside said so
	ClassOther       Class = "Other"       // listed by another program, or by hand
)

// Class says for which kind of evidence e was listed. It compares the reason with those that this package gives to its config, and parses
// nothing.
func (e BadEntry) Class() Class {
	begins := func(reason, mark string) bool {
		fixed, _, _ := strings.Cut(reason, mark)
		return strings.HasPrefix(e.Reason, fixed+mark)
	}
	switch {
	case e.Reason == reasonLoad(e.Ref):
		return ClassUndecodable
	case e.Reason == reasonValidate(e.Ref):
		return ClassInvalid
	case begins(reasonCrashLoop(e.Ref, 0, 0), "crash loop: "):
		return ClassCrashLoop
	case begins(reasonProbe(e.Ref, "", 0), "required probe "):
		return ClassUnhealthy
	case begins(reasonPerson(e.Ref, ""), "cause: "):
		return ClassRequest
	default:
		return ClassOther
	}
}
