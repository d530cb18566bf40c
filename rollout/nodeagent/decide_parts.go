// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/belayproject/belay/rollout/protocol"
)

// with is the record with a next report and the reason for it.
func (v view) with(r protocol.Report, w why) record {
	rec := v.disk
	rec.UID, rec.Status.Report, rec.Why = v.shadow.UID, r, w
	return rec
}

// turn tells of a step that nobody has to order.
func (v view) turn(event protocol.Event, w why) action {
	r, err := v.shadow.protocol().Answer(event)
	if err != nil {
		return v.idle(v.limits.verifyEvery) // the phase was looked at before: the protocol lists no such step
	}
	rec := v.with(r, w)
	if event == protocol.EventApplied {
		rec.Trial, rec.Back = trial{}, ""
	}
	return v.tell(event, rec)
}

// tell stores a record, and its status with what was seen of the node.
func (v view) tell(event protocol.Event, rec record) action {
	rec.Format = format
	rec.Status = rec.Status.seeing(v.seen)
	rec.Why = rec.Why.brief()
	rec.Status.Reason, rec.Status.Message = rec.Why.Reason, rec.Why.Message
	return action{act: tell, event: event, record: rec}
}

// seeing is the status with what was seen of the node.
func (s Status) seeing(o Observation) Status {
	s.Current, s.Previous, s.Revertible, s.BootID = o.Current, o.Previous, o.CanRevert, o.BootID
	return s
}

// idle waits, after what is news was told. A message is no news by itself: it may have numbers in it.
func (v view) idle(after time.Duration) action {
	rec := v.disk
	a := v.tell("", rec)
	if n := v.mind.note.brief(); n.Reason != "" {
		a.record.Status.Reason, a.record.Status.Message = n.Reason, n.Message
	}
	s := &a.record.Status
	if s.Reason == v.shadow.Status.Reason {
		s.Message = v.shadow.Status.Message
	}
	if v.online && *s != v.shadow.Status {
		return a
	}
	return action{act: wait, after: after, record: rec}
}

// watch asks for a check when one is due.
func (v view) watch(now time.Time, every time.Duration) action {
	c := v.mind.check
	if left := every - now.Sub(c.at); c.of(v.disk.Key, v.seen.BootID) && left > 0 {
		return v.idle(left)
	}
	return action{act: verify, record: v.disk}
}

// passed reports whether the last check of this attempt in this process and boot has passed.
func (v view) passed() bool {
	return v.mind.check.of(v.disk.Key, v.seen.BootID) && v.mind.check.verdict == Pass
}

// or is the reason, or another one where there is none.
func (w why) or(reason, message string) why {
	if w.Reason != "" {
		return w
	}
	return why{reason, message}
}

// Limits of what people get to see, in bytes.
const (
	maxReason  = 64
	maxMessage = 1024
)

// brief bounds a reason, which may come from a hook.
func (w why) brief() why { return why{clean(w.Reason, maxReason), clean(w.Message, maxMessage)} }

// clean cuts a text at a rune, and replaces what is not text.
func clean(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s[:min(len(s), 2*limit)], "?"))
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

func quoted(r protocol.Revision) string { return strconv.Quote(r.String()) }
