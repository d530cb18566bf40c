// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// RequestedByAnnotation on a Rollout names who has asked for its revision, for the history. An admission policy may see to it that it is true.
const RequestedByAnnotation = "belay.dev/requested-by"

// HeedRollback answers the verb Rollback, once for each request; r itself is the answer if there is none to give. It is to be called before
// [PolicyOf], and what it returns passed to [StatusOf], which keeps the answer. The other verbs are [rollout.Plan]'s.
//
// It goes back to the revisions of an entry of the history, unless the entry is not there or is what the rollout is about already; a revision
// that was begun since then is irreversible; a Revision of the entry is not there any more; or a group has a revision of its own that it had
// not then. Then status.refusal says so, and nothing else changes.
func HeedRollback(r *Rollout, revisions func(name string) (*Revision, bool)) *Rollout {
	r = orEmpty(r)
	v := r.Spec.Verb
	if v == nil || v.Do != DoRollback || r.Status.Progress != nil && r.Status.Progress.Handled == v.Request {
		return r
	}
	out := r.DeepCopy()
	if out.Status.Progress == nil {
		if len(out.Status.History) > 0 {
			return r // ProgressOf says what is wrong
		}
		out.Status.Progress = &RolloutProgress{}
	}
	out.Status.Progress.Handled, out.Status.Progress.Refused = v.Request, ""
	if refusal := out.goBack(v.Number, revisions); refusal != "" {
		out.Status.Progress.Refused = refusal
	}
	return out
}

// orEmpty has an empty Rollout in the place of nil.
func orEmpty(r *Rollout) *Rollout {
	if r == nil {
		return &Rollout{}
	}
	return r
}

// goBack makes the targets of an entry those of the rollout, or says why not.
func (r *Rollout) goBack(number int64, revisions func(name string) (*Revision, bool)) (refusal string) {
	to, refusal := CanGoBack(r, number, revisions)
	if refusal == "" {
		r.Status.Rollback = &RollbackStatus{Number: number, RolloutTargets: to, Over: r.Spec.targets()}
	}
	return refusal
}

// CanGoBack says to what the nodes would be brought by a rollback to an entry of the history, or why [HeedRollback] would refuse it. R is not changed.
func CanGoBack(r *Rollout, number int64, revisions func(name string) (*Revision, bool)) (to RolloutTargets, refusal string) {
	r = orEmpty(r)
	history := r.Status.History
	i := slices.IndexFunc(history, func(e HistoryEntry) bool { return e.Number == number })
	switch {
	case len(history) == 0:
		return to, fmt.Sprintf("the history has no entry %d: it is empty", number)
	case i < 0:
		return to, fmt.Sprintf("the history has no entry %d, only %d to %d", number, history[0].Number, history[len(history)-1].Number)
	case slices.Equal(history[i].refs(), history[len(history)-1].refs()):
		return to, fmt.Sprintf("entry %d is what the rollout is about already: %q", number, history[i].Revision.Name)
	}
	for _, e := range history[i+1:] {
		if e.Irreversible && e.Begun {
			return to, fmt.Sprintf("entry %d, revision %q, is irreversible and was begun: no node goes back from it", e.Number, e.Revision.Name)
		}
	}
	to = *history[i].RolloutTargets.DeepCopy()
	to.Groups = slices.DeleteFunc(to.Groups, func(g GroupRevision) bool {
		return !slices.ContainsFunc(r.Spec.Groups, func(now Group) bool { return now.Name == g.Name })
	})
	for _, ref := range append([]GroupRevision{{Revision: to.Revision}}, to.Groups...) {
		if _, err := find(ref.Revision, revisions); err != nil {
			err.Field = fmt.Sprintf("revision%s of entry %d", err.Field, number)
			return to, err.Error()
		}
	}
	for _, g := range r.Spec.targets().Groups {
		if to.of(g.Name) == nil {
			return to, fmt.Sprintf("group %q has a revision of its own, and had none in entry %d: change spec.groups instead", g.Name, number)
		}
	}
	return to, ""
}

// EntryBefore is the entry of the history that a rollback is meant to go back to if nobody names one: the last one that was completed with something else
// than what the rollout is about, and to which [CanGoBack] says yes. After a rollback it is one before the entry that was gone back to: what was just left is
// not gone back to. Nil if there is none, and then refusal says why.
func EntryBefore(r *Rollout, revisions func(name string) (*Revision, bool)) (entry *HistoryEntry, refusal string) {
	r = orEmpty(r)
	history := r.Status.History
	if len(history) == 0 {
		return nil, "it has no history"
	}
	refusal = "it was completed with nothing but what it is about now"
	last := &history[len(history)-1]
	for i := len(history) - 1; i >= 0; i-- {
		e := &history[i]
		if e.Result != HistoryCompleted || slices.Equal(e.refs(), last.refs()) {
			continue
		}
		if last.RollbackTo > 0 && e.Number >= last.RollbackTo {
			refusal = fmt.Sprintf("it has gone back to entry %d, and was completed with nothing else before that", last.RollbackTo)
			continue
		}
		_, why := CanGoBack(r, e.Number, revisions)
		if why == "" {
			return e, ""
		}
		refusal = why
	}
	return nil, refusal
}

// refs are the revisions as [rollout.Progress] has them.
func (t *RolloutTargets) refs() []protocol.Revision {
	refs := []protocol.Revision{protocol.Revision(t.Revision)}
	for _, g := range t.Groups {
		refs = append(refs, protocol.Revision(g.Revision))
	}
	return refs
}

// targetsOf are the revisions of a policy.
func targetsOf(p *rollout.Policy) (t RolloutTargets, irreversible bool) {
	t.Revision, irreversible = PinnedRevision(p.Target.Ref()), p.Target.Irreversible
	for _, g := range p.Groups {
		if g.Target != nil {
			t.Groups = append(t.Groups, GroupRevision{Name: g.Name, Revision: PinnedRevision(g.Target.Ref())})
			irreversible = irreversible || g.Target.Irreversible
		}
	}
	return t, irreversible
}

// record brings the history up to date: other targets are a new entry, which supersedes the one before.
func (s *RolloutStatus) record(r *Rollout, o *Observed, now metav1.Time) {
	targets, irreversible := targetsOf(&o.Policy)
	s.Revision = &targets.Revision
	s.Rollback = r.rollback().DeepCopy()
	n := len(s.History)
	if n == 0 || !slices.Equal(s.History[n-1].refs(), targets.refs()) {
		entry := HistoryEntry{Number: 1, Started: now, By: r.requestedBy()}
		if n > 0 {
			last := &s.History[n-1]
			entry.Number = last.Number + 1
			last.end(HistorySuperseded, now)
		}
		if s.Rollback != nil {
			entry.RollbackTo = s.Rollback.Number
		}
		s.History = append(s.History, entry)
	}
	limit := int(r.Spec.HistoryLimit)
	if limit == 0 {
		limit = DefaultHistoryLimit
	}
	s.History = s.History[max(0, len(s.History)-limit):]
	last := &s.History[len(s.History)-1]
	last.RolloutTargets, last.Irreversible = targets, irreversible
	last.Begun = last.Begun || begun(o)
	if last.Result == "" {
		last.Counts, last.FailedNodes = countsOf(o.Decisions.Counts), failedNodes(o.Decisions.Progress.Outcomes)
	}
	if o.Decisions.Phase == rollout.Completed {
		last.end(HistoryCompleted, now)
		s.Completed = targets.DeepCopy()
	}
}

func (e *HistoryEntry) end(result HistoryResult, now metav1.Time) {
	if e.Result == "" {
		e.Result, e.Ended = result, &now
	}
}

// begun reports whether a node may have been touched by the targets, or has them already.
func begun(o *Observed) bool {
	d := &o.Decisions
	return d.Counts.Done > 0 || len(d.Progress.Outcomes) > 0 ||
		slices.ContainsFunc(d.Ledger.Slots, func(s protocol.Slot) bool { return s.Rollout == o.Policy.UID })
}

func failedNodes(outcomes []rollout.Outcome) []string {
	var names []string
	for _, o := range outcomes {
		if o.Result != rollout.Succeeded {
			names = append(names, clip(o.Node, 253))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), MaxFailedNodes)]
}

// requestedBy is who has asked for the targets: by annotation, or the field manager that has written them last.
func (r *Rollout) requestedBy() string {
	if by := r.Annotations[RequestedByAnnotation]; by != "" {
		return clip(by, 253)
	}
	fields := []string{"f:revision", "f:groups"}
	if r.rollback() != nil {
		fields = []string{"f:verb"}
	}
	by := ""
	var last metav1.Time
	for _, m := range r.ManagedFields {
		if m.Subresource != "" || m.FieldsV1 == nil || m.Time != nil && m.Time.Before(&last) {
			continue
		}
		var set struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		raw, err := json.Marshal(m.FieldsV1) // its Raw field and its accessors differ between releases
		if err != nil || json.Unmarshal(raw, &set) != nil {
			continue // nobody to name
		}
		if slices.ContainsFunc(fields, func(f string) bool { return set.Spec[f] != nil }) {
			by = m.Manager
			if m.Time != nil {
				last = *m.Time
			}
		}
	}
	return clip(by, 253)
}

// clip cuts a text to so many characters.
func clip(text string, n int) string {
	text = strings.ToValidUTF8(text, "?")
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}
