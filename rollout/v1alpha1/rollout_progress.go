// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// RolloutProgress is what the controller remembers of a rollout between two looks at it: a [rollout.Progress]. [ProgressOf] reads it.
//
// members, nodes and outcomes are tables of text, one line for each node. One that is longer than 4 KiB is stored as "gzip:" and the
// compressed text in base64: cut the prefix off, and pass the rest through "base64 -d | gunzip". A word that is empty, or has spaces, quotes or
// signs that do not print, is quoted as in Go. "#7" stands for the seventh line of members.
//
// Fields that are not known, of a newer version, are kept as they are.
//
// +kubebuilder:pruning:PreserveUnknownFields
type RolloutProgress struct {
	// targets are the revisions that it is about: that of the rollout, then those of groups.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=65
	Targets []RevisionRef `json:"targets,omitempty"`

	// members are the UIDs of the nodes that were selected when it began.
	// +optional
	Members string `json:"members,omitempty"`

	// stages are the names of the stages to which the numbers here belong.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Stages []string `json:"stages,omitempty"`

	// stage is the number of the stage under way, from 0 on.
	// +optional
	Stage int64 `json:"stage,omitempty"`

	// stageFrom is how many outcomes there were when it began.
	// +optional
	StageFrom int64 `json:"stageFrom,omitempty"`

	// soakSince is when its last node was done, to the nanosecond.
	// +optional
	SoakSince string `json:"soakSince,omitempty"`

	// nodes are those in flight, and those that have failed or were put off: the UID, then what is known as key=value.
	// +optional
	Nodes string `json:"nodes,omitempty"`

	// phase is where the rollout stands.
	// +optional
	Phase string `json:"phase,omitempty"`

	// frozen says what has stopped it, and why.
	// +optional
	Frozen string `json:"frozen,omitempty"`

	// accepted: the failures among so many outcomes were accepted.
	// +optional
	Accepted int64 `json:"accepted,omitempty"`

	// rescue: nodes that a revision before has broken go first.
	// +optional
	Rescue bool `json:"rescue,omitempty"`

	// handled is the last request that was looked at.
	// +optional
	Handled string `json:"handled,omitempty"`

	// refused says why it was not carried out.
	// +optional
	Refused string `json:"refused,omitempty"`

	// promoted is up to which stage somebody has promoted it.
	// +optional
	Promoted int64 `json:"promoted,omitempty"`

	// stopped is the request that keeps the ledger closed.
	// +optional
	Stopped string `json:"stopped,omitempty"`

	// frozenBy is the closure of the ledger by a freeze.
	// +optional
	FrozenBy string `json:"frozenBy,omitempty"`

	// lifted are closures that were in force before.
	// +optional
	// +listType=atomic
	Lifted []string `json:"lifted,omitempty"`

	// outcomes are the ends of attempts in the order in which they were seen: the UID, the node, the result, and when that was, if it is another
	// time than of the line before.
	// +optional
	Outcomes string `json:"outcomes,omitempty"`

	// cycles are how long the last nodes took, with blanks between them.
	// +optional
	Cycles string `json:"cycles,omitempty"`

	// unknown are the fields of a newer version, by name.
	unknown map[string]json.RawMessage `json:"-"`
}

// plainProgress is a RolloutProgress of which package json sees the fields alone.
type plainProgress RolloutProgress

// MarshalJSON writes it, with the fields of a newer version as they were read.
func (p RolloutProgress) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(plainProgress(p))
	if err != nil || len(p.unknown) == 0 {
		return raw, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("reading the progress just written: %w", err)
	}
	for name, value := range p.unknown {
		all[name] = value
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads it, and keeps fields of a newer version.
func (p *RolloutProgress) UnmarshalJSON(raw []byte) error {
	var plain plainProgress
	if err := json.Unmarshal(raw, &plain); err != nil {
		return fmt.Errorf("reading the progress of a rollout: %w", err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("reading the progress of a rollout: %w", err)
	}
	for i := range reflect.TypeFor[plainProgress]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[plainProgress]().Field(i).Tag.Get("json"), ",")
		delete(all, name)
	}
	if len(all) > 0 {
		plain.unknown = all
	}
	*p = RolloutProgress(plain)
	return nil
}
