// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"time"

	"github.com/belayproject/belay/lkg"
)

// Status is what a Syncer knows, for reporters. Building it is pure; equal inputs give equal Statuses.
type Status struct {
	// Assigned is the config that was last recorded as current; the zero Ref is the local config.
	Assigned lkg.Ref
	// Active is the config in use; the zero Ref is the local config.
	Active lkg.Ref
	// LastKnownGood is the rollback target; the zero Ref is the local config.
	LastKnownGood lkg.Ref
	// Local says what the local config is: "init" or "default".
	Local string
	// Rejected lists the configs that this node won't use, newest first, bounded.
	Rejected []lkg.BadEntry
	// Trial is set while Active is on trial.
	Trial *TrialStatus
	// Pending is a change that was found and waits, such as an edit under [Follow]; Why says for what and until when. Nil
	// when nothing waits.
	Pending *Change
	// Error is the cause of the last trouble in finding or fetching the wanted config, or why what runs is not healthy
	// where the Condition has another cause; empty when there is none.
	Error string
	// Alarm is set when nothing is left to roll back to, or when what was rolled back to, or was promoted, is not well;
	// empty otherwise.
	Alarm string
	// Condition is the summary with the literal texts of the ConfigOK node condition.
	Condition lkg.Condition
	// ObservedGeneration is the newest generation of the source that was acted upon.
	ObservedGeneration int64
	// StartedAt is when the config in use was last started: a new value renews the condition's heartbeat.
	StartedAt time.Time
}

// TrialStatus says how far a trial has come.
type TrialStatus struct {
	// Since is when the config was assigned, by this node's wall clock, for people.
	Since time.Time
	// Needed is the healthy time that the trial asks for, Healthy what has been gathered.
	Needed, Healthy time.Duration
	// Counted are the starts that count against the config, Allowed how many may.
	Counted, Allowed int
	// Ignored says, one line each, which starts did not count and why.
	Ignored []string
	// Failing names the probes that fail now, with their errors.
	Failing []string
}
