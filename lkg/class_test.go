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
	for reason, want := range map[string]Class{
		reasonLoad(r): classUndecodable, reasonValidate(r): classInvalid, reasonCrashLoop(r, 3, 2): classCrashLoop,
		reasonProbe(r, "healthz", time.Minute): classUnhealthy, reasonPerson(r, "drill"): classRequest,
		reasonLoad(Ref{UID: "u2"}): classOther, "": classOther, "by hand": classOther,
	} {
		if got := (BadEntry{Ref: r, Reason: reason}).Class(); got != want {
			t.Errorf("%q is of class %s, want %s", reason, got, want)
		}
	}
}
