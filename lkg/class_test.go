// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"testing"
	"time"
)

// Each reason that this package gives has its class of evidence, and a reason of others has none of these.
func TestClassOfEvidence(t *testing.T) {
	r := Ref{UID: "u1"}
	current, below := Used{Role: RoleCurrent, UID: r.UID}, Used{Role: RolePrevious, UID: r.UID}
	for reason, want := range map[string]Class{
		reasonLoad(r): classUndecodable, reasonValidate(r): classInvalid, reasonCrashLoop(r, 3, 2): classCrashLoop,
		reasonProbe(current, "healthz", time.Minute): classUnhealthy, reasonPerson(r, "drill"): classRequest,
		reasonProbe(below, "healthz", time.Minute): classUnhealthy, reasonWeak(r, 4, 0): classBoots,
		reasonWeak(r, 0, 4): classAgent, "fallback (UID: u1), unplanned boots: 4, tolerated: 3": classBoots,
		"fallback (UID: u1) crashed, 4 unexplained restarts, tolerated: 3": classCrashLoop,
		`fallback (UID: u1) failed required probe "ready"`:                 classUnhealthy,
		reasonLoad(Ref{UID: "u2"}):                                         classOther, "": classOther, "by hand": classOther,
	} {
		if got := (BadEntry{Ref: r, Reason: reason}).Class(); got != want {
			t.Errorf("%q is of class %s, want %s", reason, got, want)
		}
	}
}
