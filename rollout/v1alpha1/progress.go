// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// ProgressOf is what a status remembers of a rollout, to the last nanosecond. A status that cannot be read exactly is an error that names the
// field, and so is one without progress of a rollout that has begun: neither is ever taken for a rollout that has not.
func ProgressOf(s RolloutStatus) (rollout.Progress, error) {
	if s.Progress == nil {
		if len(s.History) > 0 {
			return rollout.Progress{}, fmt.Errorf("status.progress is missing, though the rollout has begun with entry %d of its history",
				s.History[len(s.History)-1].Number)
		}
		return rollout.Progress{}, nil
	}
	p, err := s.Progress.read()
	if err != nil {
		return rollout.Progress{}, fmt.Errorf("status.progress.%w", err)
	}
	return p, nil
}

// read is the progress, or which field cannot be read and why.
func (p *RolloutProgress) read() (rollout.Progress, error) {
	out := rollout.Progress{
		Stage: int(p.Stage), StageFrom: int(p.StageFrom), Phase: rollout.Phase(p.Phase), Frozen: p.Frozen, Accepted: int(p.Accepted),
		Rescue: p.Rescue, Handled: p.Handled, Refused: p.Refused, Promoted: int(p.Promoted), Stopped: p.Stopped, FrozenBy: p.FrozenBy,
		Lifted: slices.Clone(p.Lifted), Stages: slices.Clone(p.Stages),
	}
	if p.Phase != "" && !slices.Contains(rollout.Phases(), out.Phase) {
		return out, fmt.Errorf("phase: %q is not known", p.Phase)
	}
	for _, t := range p.Targets {
		out.Targets = append(out.Targets, protocol.Revision(t))
	}
	var err error
	if out.SoakSince, err = timeIn(p.SoakSince); err != nil {
		return out, fmt.Errorf("soakSince: %w", err)
	}
	if out.Members, err = read(p.Members, nil, membersIn); err != nil {
		return out, fmt.Errorf("members: %w", err)
	}
	if out.Nodes, err = read(p.Nodes, out.Members, nodesIn); err != nil {
		return out, fmt.Errorf("nodes: %w", err)
	}
	if out.Outcomes, err = read(p.Outcomes, out.Members, outcomesIn); err != nil {
		return out, fmt.Errorf("outcomes: %w", err)
	}
	if out.Cycles, err = cyclesIn(p.Cycles); err != nil {
		return out, fmt.Errorf("cycles: %w", err)
	}
	return out, nil
}

// read unpacks a table and reads it.
func read[T any](packed string, members []string, in func(string, []string) (T, error)) (T, error) {
	table, err := unpack(packed)
	if err != nil {
		var none T
		return none, err
	}
	return in(table, members)
}

// setProgress makes p what the status remembers. Tables that say the same stay as they are, and so do the fields of a newer version.
func (s *RolloutStatus) setProgress(p rollout.Progress) {
	if s.Progress == nil {
		s.Progress = &RolloutProgress{}
	}
	to := s.Progress
	to.Targets = nil
	for _, t := range p.Targets {
		to.Targets = append(to.Targets, RevisionRef(t))
	}
	if to.Stages = slices.Clone(p.Stages); len(to.Stages) == 0 {
		to.Stages = nil
	}
	to.Stage, to.StageFrom, to.SoakSince, to.Phase = int64(p.Stage), int64(p.StageFrom), timeText(p.SoakSince), string(p.Phase)
	to.Frozen, to.Accepted, to.Rescue, to.Handled, to.Refused = p.Frozen, int64(p.Accepted), p.Rescue, p.Handled, p.Refused
	to.Promoted, to.Stopped, to.FrozenBy = int64(p.Promoted), p.Stopped, p.FrozenBy
	to.Lifted = slices.Clone(p.Lifted)
	if len(to.Lifted) == 0 {
		to.Lifted = nil
	}
	at := placesOf(p.Members)
	repack(&to.Members, memberTable(p.Members))
	repack(&to.Nodes, nodeTable(p.Nodes, at))
	repack(&to.Outcomes, outcomeTable(p.Outcomes, at))
	to.Cycles = cycleText(p.Cycles)
}

// repack stores a table, unless it is stored already: what another version has compressed may look different.
func repack(packed *string, table string) {
	if was, err := unpack(*packed); err != nil || was != table {
		*packed = pack(table)
	}
}

func memberTable(members []string) string {
	var b strings.Builder
	for _, uid := range members {
		b.WriteString(word(uid) + "\n")
	}
	return b.String()
}

func membersIn(table string, _ []string) ([]string, error) {
	lines, err := linesOf(table)
	if err != nil {
		return nil, err
	}
	var members []string
	for i, line := range lines {
		uid, rest, bare, err := nextWord(line)
		if err == nil && (rest != "" || bare && uid[0] == '#') {
			err = fmt.Errorf("%q is not a UID", line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		members = append(members, uid)
	}
	return members, nil
}

func outcomeTable(outcomes []rollout.Outcome, at places) string {
	var b strings.Builder
	last := ""
	for _, o := range outcomes {
		b.WriteString(at.ref(o.UID) + " " + word(o.Node) + " " + word(string(o.Result)))
		if text := timeText(o.At); text != last {
			b.WriteString(" " + word(text))
			last = text
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func outcomesIn(table string, members []string) ([]rollout.Outcome, error) {
	lines, err := linesOf(table)
	if err != nil {
		return nil, err
	}
	var outcomes []rollout.Outcome
	var last time.Time
	for i, line := range lines {
		o, err := outcomeIn(line, members, last)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		outcomes, last = append(outcomes, o), o.At
	}
	return outcomes, nil
}

func outcomeIn(line string, members []string, last time.Time) (rollout.Outcome, error) {
	o := rollout.Outcome{At: last}
	uid, rest, err := uidOf(line, members)
	if err != nil {
		return o, err
	}
	o.UID = uid
	if o.Node, rest, _, err = nextWord(rest); err != nil {
		return o, err
	}
	result, rest, _, err := nextWord(rest)
	if err != nil {
		return o, err
	}
	if o.Result = rollout.Result(result); !slices.Contains(results(), o.Result) {
		return o, fmt.Errorf("result %q is not known", result)
	}
	if rest == "" {
		return o, nil
	}
	at, rest, _, err := nextWord(rest)
	if err != nil {
		return o, err
	}
	if rest != "" {
		return o, fmt.Errorf("%q is too much", rest)
	}
	o.At, err = timeIn(at)
	return o, err
}

func cycleText(cycles []time.Duration) string {
	words := make([]string, 0, len(cycles))
	for _, c := range cycles {
		words = append(words, c.String())
	}
	return strings.Join(words, " ")
}

func cyclesIn(text string) ([]time.Duration, error) {
	if text == "" {
		return nil, nil
	}
	var cycles []time.Duration
	var errs []error
	for _, w := range strings.Split(text, " ") {
		d, err := time.ParseDuration(w)
		cycles, errs = append(cycles, d), append(errs, err)
	}
	return cycles, errors.Join(errs...)
}
