// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"encoding/json"
	"fmt"
	"time"
)

// A textDuration is a duration that is a string in JSON, as in every object of the Kubernetes API: "10m".
type textDuration time.Duration

// MarshalText writes it as Go does: "10m0s".
func (d textDuration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalJSON reads a string; null leaves it as it is.
func (d *textDuration) UnmarshalJSON(text []byte) error {
	var s *string
	err := json.Unmarshal(text, &s)
	if err == nil && s == nil {
		return nil
	}
	var v time.Duration
	if err == nil {
		v, err = time.ParseDuration(*s)
	}
	if err != nil {
		return fmt.Errorf("%s is no duration, want a string such as \"30s\" or \"10m\": %w", text, err)
	}
	*d = textDuration(v)
	return nil
}

// The plain types have the fields of the API's, and none of their methods. The JSON types put the durations in their place.
type (
	plainPolicy     Policy
	plainRule       Rule
	plainEscalation Escalation
)

type policyJSON struct {
	plainPolicy
	TierDeadline   textDuration  `json:"tierDeadline,omitempty"`
	Settle         *textDuration `json:"settle,omitempty"`
	VolumeDeadline textDuration  `json:"volumeDeadline,omitempty"`
	Soak           textDuration  `json:"soak,omitempty"`
}

type ruleJSON struct {
	plainRule
	Deadline textDuration `json:"deadline,omitempty"`
}

type escalationJSON struct {
	plainEscalation
	After textDuration `json:"after"`
}

func (p *Policy) json() policyJSON {
	return policyJSON{plainPolicy(*p), textDuration(p.TierDeadline), (*textDuration)(p.Settle), textDuration(p.VolumeDeadline), textDuration(p.Soak)}
}

// MarshalJSON writes durations as strings.
func (p Policy) MarshalJSON() ([]byte, error) { return json.Marshal(p.json()) }

// UnmarshalJSON reads durations from strings, and passes over fields that it does not know, as JSON does.
func (p *Policy) UnmarshalJSON(text []byte) error {
	j := p.json()
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	*p = Policy(j.plainPolicy)
	p.TierDeadline, p.Settle = time.Duration(j.TierDeadline), (*time.Duration)(j.Settle)
	p.VolumeDeadline, p.Soak = time.Duration(j.VolumeDeadline), time.Duration(j.Soak)
	return nil
}

// MarshalJSON writes the deadline as a string. It refuses a rule with a Filter, which would match more pods without it.
func (r Rule) MarshalJSON() ([]byte, error) {
	if r.Filter != nil {
		return nil, fmt.Errorf("filter of rule %q is code and has no JSON, want a rule without one: %w", r.Name, ErrOption)
	}
	return json.Marshal(ruleJSON{plainRule(r), textDuration(r.Deadline)})
}

// UnmarshalJSON reads the deadline from a string.
func (r *Rule) UnmarshalJSON(text []byte) error {
	j := ruleJSON{plainRule(*r), textDuration(r.Deadline)}
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	*r = Rule(j.plainRule)
	r.Deadline = time.Duration(j.Deadline)
	return nil
}

// MarshalJSON writes the time as a string.
func (e Escalation) MarshalJSON() ([]byte, error) {
	return json.Marshal(escalationJSON{plainEscalation(e), textDuration(e.After)})
}

// UnmarshalJSON reads the time from a string.
func (e *Escalation) UnmarshalJSON(text []byte) error {
	j := escalationJSON{plainEscalation(*e), textDuration(e.After)}
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	*e = Escalation(j.plainEscalation)
	e.After = time.Duration(j.After)
	return nil
}
