// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

// ConditionType is the type of the condition that reports the config of a node.
const ConditionType = "ConfigOK"

// A Status is that of a condition.
type Status string

// The statuses: OK, known to be bad, and desired config unclear.
const (
	StatusTrue    Status = "True"
	StatusFalse   Status = "False"
	StatusUnknown Status = "Unknown"
)

// A Condition is the summary for people: the message is the effect, the reason is the cause. Two conditions are
// different if the status, the reason or the message differs, so == tells whether the transition time moves. The
// texts are never parsed.
type Condition struct {
	Status  Status
	Reason  string
	Message string
}

// Unclear is the condition of a live process that runs v.Use while the desired config can not be found for the given
// cause. The process changes nothing; only its report changes.
func (v Verdict) Unclear(cause string) Condition { return Condition{} }
