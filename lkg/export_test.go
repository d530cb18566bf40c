// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

// What only the tests of package lkg_test use.

type Moment = moment

var BeliefStream = beliefStream

var Classify = classify

const DefaultMinHealthyRun = defaultMinHealthyRun

const FallbackThreshold = fallbackThreshold

const (
	ResultIdle  = resultIdle
	ResultWait  = resultWait
	CauseReboot = causeReboot
	ExitUnknown = exitUnknown
)
