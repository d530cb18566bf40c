// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

// What only the tests of package lkg_test use.

type (
	Moment       = moment
	FieldError   = fieldError
	CheckOutcome = checkOutcome
	Result       = progressResult
	Soak         = soakRecord
	Marker       = restartMarker
	RecordError  = recordError
)

// Promote is what Tracker.Healthy decides by.
var Promote = judgeHealth

var BeliefStream = beliefStream

var Classify = classify

const DefaultMinHealthyRun = defaultMinHealthyRun

const DefaultProbeDeadline = defaultProbeDeadline

const FallbackThreshold = fallbackThreshold

const (
	ResultIdle  = resultIdle
	ResultWait  = resultWait
	CauseReboot = causeReboot
	ExitUnknown = exitUnknown
)

// DecodeCase is the case in a record of a trial.
func DecodeCase(record string) *Case {
	r, err := decodeTrial([]byte(record))
	if err != nil {
		panic(err)
	}
	return r.Case
}

// ListBad is a list of n rejections, each with these last lines.
func ListBad(n int, last []string) []BadEntry {
	var s State
	for i := range n {
		s.addBad(BadEntry{Ref: Ref{UID: string(rune('a' + i))}, Last: last})
	}
	return s.Bad
}
