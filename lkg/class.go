// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import "strings"

// A Class is the kind of evidence for which a config was rejected: Undecodable, Invalid, CrashLoop, Unhealthy, Request
// or Other. They are few enough for a label of a metric.
type Class string

// The classes of evidence.
const (
	classUndecodable Class = "Undecodable" // it can't be decoded
	classInvalid     Class = "Invalid"     // it does not pass the checks
	classCrashLoop   Class = "CrashLoop"   // more unexplained starts than its threshold
	classUnhealthy   Class = "Unhealthy"   // a required probe failed for too long
	classRequest     Class = "Request"     // somebody outside said so
	classOther       Class = "Other"       // listed by another program, or by hand
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
		return classUndecodable
	case e.Reason == reasonValidate(e.Ref):
		return classInvalid
	case begins(reasonCrashLoop(e.Ref, 0, 0), "crash loop: "):
		return classCrashLoop
	case begins(reasonProbe(e.Ref, "", 0), "required probe "):
		return classUnhealthy
	case begins(reasonPerson(e.Ref, ""), "cause: "):
		return classRequest
	default:
		return classOther
	}
}
