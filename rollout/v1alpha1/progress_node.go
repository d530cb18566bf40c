// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// A nodeField is one field of a [rollout.NodeProgress]: how it is written, empty for the zero value, and read.
type nodeField struct {
	key   string
	write func(*rollout.NodeProgress) string
	read  func(*rollout.NodeProgress, string) error
}

// nodeFields are all of them, in the order in which they are written.
func nodeFields() []nodeField {
	type node = rollout.NodeProgress
	return []nodeField{
		textField("node", nil, func(e *node) *string { return &e.Node }),
		numberField("attempt", func(e *node) *protocol.Attempt { return &e.Attempt }),
		textField("state", append(protocol.States(), ""), func(e *node) *protocol.State { return &e.State }),
		timeField("since", func(e *node) *time.Time { return &e.Since }),
		timeField("admitted", func(e *node) *time.Time { return &e.Admitted }),
		numberField("stage", func(e *node) *int { return &e.Stage }),
		flagField("critical", func(e *node) *bool { return &e.Critical }),
		textField("result", results(), func(e *node) *rollout.Result { return &e.Result }),
		numberField("attempts", func(e *node) *int { return &e.Attempts }),
		numberField("deferrals", func(e *node) *int { return &e.Deferrals }),
		timeField("notBefore", func(e *node) *time.Time { return &e.NotBefore }),
		flagField("failed", func(e *node) *bool { return &e.Failed }),
		flagField("accepted", func(e *node) *bool { return &e.Accepted }),
		flagField("recovered", func(e *node) *bool { return &e.Recovered }),
	}
}

// results are those that this version knows. One that it does not know could be taken for something else.
func results() []rollout.Result {
	return []rollout.Result{
		"", rollout.Succeeded, rollout.Refused, rollout.Deferred, rollout.Undone,
		rollout.FailedClean, rollout.FailedBroken, rollout.Suspected, rollout.Lost, rollout.FellBack,
	}
}

func textField[T ~string](key string, known []T, at func(*rollout.NodeProgress) *T) nodeField {
	return nodeField{
		key:   key,
		write: func(e *rollout.NodeProgress) string { return string(*at(e)) },
		read: func(e *rollout.NodeProgress, text string) error {
			if known != nil && !slices.Contains(known, T(text)) {
				return fmt.Errorf("%q is not known", text)
			}
			*at(e) = T(text)
			return nil
		},
	}
}

func numberField[T ~int | ~int64](key string, at func(*rollout.NodeProgress) *T) nodeField {
	return nodeField{
		key: key,
		write: func(e *rollout.NodeProgress) string {
			if *at(e) == 0 {
				return ""
			}
			return strconv.FormatInt(int64(*at(e)), 10)
		},
		read: func(e *rollout.NodeProgress, text string) error {
			n, err := strconv.ParseInt(text, 10, strconv.IntSize)
			*at(e) = T(n)
			return err
		},
	}
}

func timeField(key string, at func(*rollout.NodeProgress) *time.Time) nodeField {
	return nodeField{
		key:   key,
		write: func(e *rollout.NodeProgress) string { return timeText(*at(e)) },
		read: func(e *rollout.NodeProgress, text string) (err error) {
			*at(e), err = timeIn(text)
			return err
		},
	}
}

func flagField(key string, at func(*rollout.NodeProgress) *bool) nodeField {
	return nodeField{
		key: key,
		write: func(e *rollout.NodeProgress) string {
			if !*at(e) {
				return ""
			}
			return "true"
		},
		read: func(e *rollout.NodeProgress, text string) error {
			if text != "true" {
				return fmt.Errorf("%q is not true", text)
			}
			*at(e) = true
			return nil
		},
	}
}

// timeText is a time to the nanosecond; empty for none.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func timeIn(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if t = t.UTC(); err == nil && (t.Year() < 0 || t.Year() > 9999) {
		err = fmt.Errorf("%q is too far away", text)
	}
	return t, err
}

// nodeTable writes nodes, in the order of their UIDs.
func nodeTable(nodes map[string]rollout.NodeProgress, at places) string {
	fields := nodeFields()
	uids := make([]string, 0, len(nodes))
	for uid := range nodes {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	var b strings.Builder
	for _, uid := range uids {
		b.WriteString(at.ref(uid))
		e := nodes[uid]
		for _, f := range fields {
			if text := f.write(&e); text != "" {
				b.WriteString(" " + f.key + "=" + word(text))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// nodesIn reads what nodeTable has written.
func nodesIn(table string, members []string) (map[string]rollout.NodeProgress, error) {
	lines, err := linesOf(table)
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	fields := map[string]nodeField{}
	for _, f := range nodeFields() {
		fields[f.key] = f
	}
	nodes := make(map[string]rollout.NodeProgress, len(lines))
	for i, line := range lines {
		uid, e, err := nodeIn(line, members, fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if _, twice := nodes[uid]; twice {
			return nil, fmt.Errorf("line %d: the node with UID %q is there twice", i+1, uid)
		}
		nodes[uid] = e
	}
	return nodes, nil
}

func nodeIn(line string, members []string, fields map[string]nodeField) (string, rollout.NodeProgress, error) {
	var e rollout.NodeProgress
	uid, rest, err := uidOf(line, members)
	for err == nil && rest != "" {
		key, value, _ := strings.Cut(rest, "=")
		f, known := fields[key]
		if !known {
			return uid, e, fmt.Errorf("field %q is not known", key)
		}
		var text string
		if text, rest, _, err = nextWord(value); err == nil {
			err = f.read(&e, text)
		}
		if err != nil {
			err = fmt.Errorf("field %q: %w", key, err)
		}
	}
	return uid, e, err
}
