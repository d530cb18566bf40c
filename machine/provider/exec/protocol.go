// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// Verbs are the last argument of the program.
const (
	verbAbilities = "abilities"
	verbCreate    = "create"
	verbGet       = "get"
	verbList      = "list"
	verbDelete    = "delete"
	verbPlan      = "plan"
	verbUpdate    = "update"
	verbValidate  = "validate"
	verbStop      = "stop"
	verbReboot    = "reboot"
	verbAdopt     = "adopt"
	verbCapacity  = "capacity"
	verbConsole   = "console"
)

// hello is the request of "abilities".
type hello struct {
	Protocol int `json:"protocol"`
}

// onRef is the request of "stop", "reboot" and "console".
type onRef struct {
	Ref   provider.Ref `json:"ref"`
	ID    string       `json:"id,omitempty"`
	Limit int          `json:"limit,omitempty"`
}

// A reply is what the program answers. Which field is set goes by the verb; validate has none.
type reply struct {
	Protocol  int                 `json:"protocol,omitempty"`
	Abilities []string            `json:"abilities,omitempty"`
	Instance  *provider.Instance  `json:"instance,omitempty"`
	Instances []provider.Instance `json:"instances,omitzero"`
	Progress  *provider.Progress  `json:"progress,omitempty"`
	Plan      *plan               `json:"plan,omitempty"`
	Capacity  map[string]string   `json:"capacity,omitempty"`
	Console   []byte              `json:"console,omitempty"`
	Error     *failure            `json:"error,omitempty"`
}

// A failure is an error on the wire.
type failure struct {
	Class        provider.Class `json:"class"`
	Message      string         `json:"message"`
	AfterSeconds float64        `json:"afterSeconds,omitempty"`
}

type plan provider.Plan

func (p *plan) known() bool {
	return slices.Contains([]provider.Method{provider.InPlace, provider.Replace, provider.Unsupported, provider.Nothing}, p.Method)
}

// parse reads a reply: one JSON object, whose unknown fields are ignored. The error quotes nothing of it.
func parse(data []byte) (reply, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	var object map[string]json.RawMessage
	if err := d.Decode(&object); err != nil || object == nil {
		return reply{}, fmt.Errorf("its %d bytes of output are no JSON object", len(data))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return reply{}, fmt.Errorf("its output goes on after the JSON object, at byte %d of %d", d.InputOffset(), len(data))
	}
	var r reply
	if err := json.Unmarshal(data, &r); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return reply{}, fmt.Errorf("field %.80q of its reply has the wrong form: want %s", wrong.Field, wrong.Type)
		}
		return reply{}, errors.New("a field of its reply has the wrong form")
	}
	return r, nil
}

// maxAfter bounds when a program may ask to be called again.
const maxAfter = 24 * time.Hour

// maxMessage bounds what is taken over of a message.
const maxMessage = 2000

// err is the failure as an error, without secrets.
func (f failure) err(hide secrets) error {
	class := f.Class
	if !slices.Contains(classes(), class) {
		class = provider.Internal
	}
	e := provider.Errorf(class, "%s", clip(hide.scrub(f.Message)))
	if f.AfterSeconds > 0 {
		e.After = min(maxAfter, time.Duration(min(f.AfterSeconds, maxAfter.Seconds())*float64(time.Second)))
	}
	return e
}

func classes() []provider.Class {
	return []provider.Class{provider.InvalidConfig, provider.Unauthorized, provider.Stockout, provider.RateLimited, provider.Conflict,
		provider.Unavailable, provider.NotSupported, provider.NotFound, provider.Internal}
}

func clip(s string) string {
	if len(s) > maxMessage {
		return s[:maxMessage] + "…"
	}
	return s
}

// scrub takes secrets out of what people read.
func (r *reply) scrub(hide secrets) {
	message := func(s *string) { *s = clip(hide.scrub(*s)) }
	if r.Instance != nil {
		message(&r.Instance.Message)
	}
	if r.Progress != nil {
		message(&r.Progress.Message)
	}
	if r.Plan != nil {
		message(&r.Plan.Reason)
	}
	for i := range r.Instances {
		message(&r.Instances[i].Message)
	}
}
