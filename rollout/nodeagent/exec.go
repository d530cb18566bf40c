// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/belayproject/belay/internal/compat"
	"github.com/belayproject/belay/internal/strictjson"

	"github.com/belayproject/belay/rollout/protocol"
)

// What the exit code of a hook means. Any other one than these is a failure.
const (
	exitDeclined     = 10 // preflight: the attempt is refused, nothing was touched
	exitRebooting    = 11 // apply, revert: a reboot is under way
	exitIrreversible = 12 // revert: there is no way back, nothing was touched
)

// Exec is an [Updater] that runs commands, for operating systems and whatever else brings a tool of its own.
//
// A command is a program with its arguments; no shell is involved. It gets no input. Its environment is Env and
//
//	BELAY_VERB      observe, prepare, preflight, disruption, apply, verify or revert
//	BELAY_ATTEMPT   the key of the attempt: the same one after a restart; empty where there is none
//	BELAY_CURRENT   for disruption: what the node runs, as "name@digest"
//	BELAY_REVISION  the name of the revision
//	BELAY_DIGEST    its digest, or empty
//	BELAY_REVERT    true if the attempt goes back, else false
//
// It leads a process group of its own, and all that is left of the group is killed when it ends, and when its time is over. On Linux it is killed
// with the agent too. A tool that has to go on belongs to the init system, and the command waits for it.
//
// Observe writes an [Observation] as a JSON object to its standard output, of which bootID may be left out, verify a [Health], and disruption
// {"disruption": "Drain"}. Any of them may write {"reason": "OneWord", "message": "A sentence."} when it fails or declines: that is what people get to see, in the API. More than 64 KiB
// is an error. What it writes to standard error goes to Stderr and nowhere else.
type Exec struct {
	// Observe, Apply and Verify are required. Without Prepare nothing is fetched ahead, without Preflight no attempt is declined, without
	// Disruption it is not known what a change takes from the node, and without Revert there is no way back.
	Observe, Apply, Verify, Prepare, Preflight, Disruption, Revert []string
	// Env is the environment, as "name=value". Nil means the PATH of the agent alone: its other variables may be secrets.
	Env []string
	// Dir is where the commands run. Empty means /.
	Dir string
	// Stderr gets the standard error of all commands. Nil drops it.
	Stderr io.Writer
}

// NewUpdater returns the updater. The error names the command that is missing.
func (e Exec) NewUpdater() (Updater, error) {
	for _, c := range []struct {
		name     string
		argv     []string
		required bool
	}{
		{"Observe", e.Observe, true}, {"Apply", e.Apply, true}, {"Verify", e.Verify, true},
		{"Prepare", e.Prepare, false}, {"Preflight", e.Preflight, false}, {"Disruption", e.Disruption, false}, {"Revert", e.Revert, false},
	} {
		if (c.required || len(c.argv) > 0) && (len(c.argv) == 0 || c.argv[0] == "") {
			return nil, fmt.Errorf("nodeagent: Exec.%s names no program", c.name)
		}
	}
	if e.Env == nil {
		e.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	if e.Dir == "" {
		e.Dir = "/"
	}
	return &hooks{e}, nil
}

// A hookError says how a command failed.
type hookError struct {
	// Verb is the verb, Code the exit code; -1 if a signal ended it, or it could not be started.
	Verb string
	Code int
	// Reason and Message are what the command said of it.
	Reason, Message string
	// Err is the cause, if it was another one than the exit code.
	Err error
}

// Error implements error.
func (e *hookError) Error() string {
	text := fmt.Sprintf("hook %s: exit code %d", e.Verb, e.Code)
	if e.Err != nil {
		text = fmt.Sprintf("hook %s: %v", e.Verb, e.Err)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Unwrap is the cause.
func (e *hookError) Unwrap() error { return e.Err }

// Why is what the command said of it, for the status.
func (e *hookError) Why() (reason, message string) {
	if e.Message == "" {
		return e.Reason, e.Error()
	}
	return e.Reason, e.Message
}

// hooks is the updater of an Exec, whose fields have the names of its methods.
type hooks struct{ e Exec }

// Observe implements [Updater].
func (h *hooks) Observe(ctx context.Context) (o Observation, err error) {
	out, err := h.call(ctx, "observe", h.e.Observe, Attempt{})
	if err != nil {
		return o, err
	}
	if err := decodeAnswer("observe", out, &o); err != nil {
		return o, err
	}
	if o.BootID == "" {
		o.BootID, err = BootID()
	}
	o.CanRevert = o.CanRevert && len(h.e.Revert) > 0
	return o, err
}

// Prepare implements [Updater].
func (h *hooks) Prepare(ctx context.Context, r protocol.Revision) error {
	if len(h.e.Prepare) == 0 {
		return nil
	}
	_, err := h.call(ctx, "prepare", h.e.Prepare, Attempt{Revision: r})
	return err
}

// Preflight implements [Preflighter].
func (h *hooks) Preflight(ctx context.Context, a Attempt) error {
	if len(h.e.Preflight) == 0 {
		return nil
	}
	_, err := h.call(ctx, "preflight", h.e.Preflight, a)
	if failed, ok := compat.AsType[*hookError](err); ok && failed.Code == exitDeclined {
		return &DeclinedError{Reason: failed.Reason, Message: failed.Message}
	}
	return err
}

// Disruption implements [Disrupter].
func (h *hooks) Disruption(ctx context.Context, from, to protocol.Revision) (Disruption, error) {
	if len(h.e.Disruption) == 0 {
		return "", nil
	}
	out, err := h.call(ctx, "disruption", h.e.Disruption, Attempt{Revision: to}, "BELAY_CURRENT="+from.String())
	if err != nil {
		return "", err
	}
	var said struct {
		Disruption Disruption `json:"disruption"`
	}
	if err := decodeAnswer("disruption", out, &said); err != nil {
		return "", err
	}
	switch said.Disruption {
	case DisruptionNone, DisruptionRestart, DisruptionDrain, DisruptionReboot:
		return said.Disruption, nil
	}
	return "", fmt.Errorf("hook disruption: it is %q, want %q, %q, %q or %q", clean(string(said.Disruption), maxReason),
		DisruptionNone, DisruptionRestart, DisruptionDrain, DisruptionReboot)
}

// Apply implements [Updater].
func (h *hooks) Apply(ctx context.Context, a Attempt) error {
	_, err := h.call(ctx, "apply", h.e.Apply, a)
	return meaning(err)
}

// Verify implements [Updater].
func (h *hooks) Verify(ctx context.Context, a Attempt) (health Health, err error) {
	out, err := h.call(ctx, "verify", h.e.Verify, a)
	if err != nil {
		return health, err
	}
	if err := decodeAnswer("verify", out, &health); err != nil {
		return health, err
	}
	switch health.Verdict {
	case Pass, Fail, NotYet:
		return health, nil
	}
	return health, fmt.Errorf("hook verify: verdict is %q, want %q, %q or %q", clean(string(health.Verdict), maxReason), Pass, Fail, NotYet)
}

// Revert implements [Updater].
func (h *hooks) Revert(ctx context.Context, a Attempt) error {
	if len(h.e.Revert) == 0 {
		return ErrIrreversible
	}
	_, err := h.call(ctx, "revert", h.e.Revert, a)
	if failed, ok := compat.AsType[*hookError](err); ok && failed.Code == exitIrreversible {
		return fmt.Errorf("%w: %w", ErrIrreversible, err)
	}
	return meaning(err)
}

// meaning gives the exit codes of apply and revert their errors.
func meaning(err error) error {
	if failed, ok := compat.AsType[*hookError](err); ok && failed.Code == exitRebooting {
		return fmt.Errorf("%w: %w", ErrRebooting, err)
	}
	return err
}

// decodeAnswer is strict: a field that is misspelt would be a verdict that is missed.
func decodeAnswer(verb string, out []byte, into any) error {
	if err := strictjson.Decode(out, into); err != nil {
		return fmt.Errorf("hook %s: its output of %d bytes is not the JSON object that is asked for: %w", verb, len(out), err)
	}
	return nil
}

// drained is how long the output of a command that has ended is waited for, where somebody outside its group holds it open.
const drained = 2 * time.Second
