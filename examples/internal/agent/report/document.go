// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import "time"

// A Document is everything that is known about the config of a node at one moment.
type Document struct {
	// Node is the node's name; empty when no agent runs.
	Node string `json:"node,omitempty"`
	// Version is that of the agent whose beliefs are shown.
	Version string `json:"version"`
	// Time is when the document was made, by the clock of the node.
	Time time.Time `json:"time"`
	// Agent is the running agent; nil when none runs.
	Agent *Agent `json:"agent,omitempty"`
	// ConfigOK is the node condition: as it is reported, or, where InUse is nil, as the next start would report it. Nil
	// when that is not known.
	ConfigOK *Condition `json:"configOK,omitempty"`
	// InUse is what the child runs; nil when no agent runs, or one that has not chosen a config yet.
	InUse *InUse `json:"inUse,omitempty"`
	// Assigned is the config that was last adopted from the source.
	Assigned Assigned `json:"assigned"`
	// LastKnownGood is the one to go back to, Previous the one before it.
	LastKnownGood Good   `json:"lastKnownGood"`
	Previous      Config `json:"previous"`
	// Trial is nil unless the config in use is on trial.
	Trial *Trial `json:"trial,omitempty"`
	// Rejected lists the configs that are not used, newest first.
	Rejected []Rejected `json:"rejected,omitempty"`
	// Wanted is the last result of looking for the wanted config.
	Wanted Wanted `json:"wanted"`
	// Next is what the next start would do.
	Next Next `json:"next"`
	// Trouble lists what a person should look at, one line each.
	Trouble []string `json:"trouble,omitempty"`
}

// An Agent is a running one.
type Agent struct {
	PID     int       `json:"pid"`
	Source  string    `json:"source"`
	Started time.Time `json:"started"`
	// Child is the process id of the child; 0 while none runs.
	Child int `json:"child,omitempty"`
	// LastEnd is how the last child ended on its own; nil if none has.
	LastEnd *End `json:"lastEnd,omitempty"`
}

// An End is how a child ended on its own, or why it could not be started.
type End struct {
	At time.Time `json:"at"`
	// How is one line, such as "exit status 1 after 3s".
	How string `json:"how"`
	// Cause is the line that most likely has the cause, without what changes from one end to the next.
	Cause string `json:"cause,omitempty"`
	// Last are the last lines that the child wrote, the newest last, without secrets.
	Last []string `json:"last,omitempty"`
}

// A Condition is the summary: the message is the effect, the reason the cause.
type Condition struct {
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Detail is the evidence behind the reason; empty if there is none.
	Detail string `json:"detail,omitempty"`
}

// A Start is one on record.
type Start struct {
	At time.Time `json:"at"`
	// Cause is one word, Detail one line on how the run before it ended.
	Cause  string `json:"cause"`
	Detail string `json:"detail,omitempty"`
	// Unexplained is how many starts of the ten minutes up to this one nothing explains, after runs of the config that
	// this start uses.
	Unexplained int `json:"unexplained,omitempty"`
	// Last are the last lines of the run before.
	Last []string `json:"last,omitempty"`
}

// A Config names one config. Local is "init", "default" or "unknown" for the config of the node itself, whose other
// fields are empty.
type Config struct {
	Local           string `json:"local,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Key             string `json:"key,omitempty"`
	Digest          string `json:"digest,omitempty"`
}

// InUse is what the child runs.
type InUse struct {
	Config
	// Since is the last start of the child.
	Since time.Time `json:"since"`
	// Why is one sentence.
	Why string `json:"why"`
}

// Assigned is the config that was last adopted.
type Assigned struct {
	Config
	Since time.Time `json:"since,omitzero"`
}

// Good is the last known good config.
type Good struct {
	Config
	Promoted time.Time `json:"promoted,omitzero"`
}

// A Trial says how far it has come. Durations are Go's: "10m0s".
type Trial struct {
	Since   time.Time `json:"since"`
	Healthy string    `json:"healthy"`
	Needed  string    `json:"needed"`
	// Counted starts are unexplained; more than Allowed reject the config.
	Counted int `json:"counted"`
	Allowed int `json:"allowed"`
	// NotCounted says of each other start why it is not.
	NotCounted []string `json:"notCounted,omitempty"`
	// Failing are the probes that fail now.
	Failing []string `json:"failing,omitempty"`
}

// A Rejected config is not used until it is forgotten.
type Rejected struct {
	Config
	Since    time.Time `json:"since"`
	Class    string    `json:"class"`
	Reason   string    `json:"reason"`
	Evidence string    `json:"evidence,omitempty"`
	// Last are the last lines of the end that decided, if an end did.
	Last []string `json:"last,omitempty"`
}

// Wanted is the last result of looking for the wanted config.
type Wanted struct {
	Outcome string    `json:"outcome"`
	Cause   string    `json:"cause,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Pending says which change waits, for what and until when; empty for none.
	Pending string `json:"pending,omitempty"`
}

// Next is what the next start would do.
type Next struct {
	// Unknown says why it can't be told; empty when it can.
	Unknown string `json:"unknown,omitempty"`
	// Refuse says why it would refuse to start; empty when it would start.
	Refuse string `json:"refuse,omitempty"`
	Config
	Role    string `json:"role,omitempty"`
	OnTrial bool   `json:"onTrial,omitempty"`
	// PassedOver are the configs before it in the order of choice.
	PassedOver []PassedOver `json:"passedOver,omitempty"`
	// Rejects is the reason for which that start would find the assigned config bad.
	Rejects string `json:"rejects,omitempty"`
	// After is the newest start on record; nil if there is none.
	After *Start `json:"after,omitempty"`
}

// PassedOver is a config that would not be used, and why.
type PassedOver struct {
	Config
	Role string `json:"role"`
	Why  string `json:"why"`
}
