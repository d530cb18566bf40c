// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// Status is how far a rollout is.
type Status struct {
	Rollout string `json:"rollout"`
	Domain  string `json:"domain"`
	Phase   string `json:"phase"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Revision is what the nodes are brought to. It may differ from that of the spec after a rollback.
	Revision *v1alpha1.PinnedRevision `json:"revision,omitempty"`
	Rollback int64                    `json:"rollbackTo,omitempty"`
	Stage    *v1alpha1.StageStatus    `json:"stage,omitempty"`
	Counts   v1alpha1.RolloutCounts   `json:"counts"`
	// ExpectedEnd is an estimate.
	ExpectedEnd *metav1.Time        `json:"expectedEnd,omitempty"`
	WorstCase   *v1alpha1.WorstCase `json:"worstCase,omitempty"`
	// Waiting are the reasons for which nodes wait, the most frequent one first.
	Waiting []Waiting `json:"waiting,omitempty"`
	// Nodes are those of which there is something to say; of NodesOmitted more there would be.
	Nodes        []v1alpha1.NodeReason `json:"nodes,omitempty"`
	NodesOmitted int64                 `json:"nodesOmitted,omitempty"`
	Request      *Request              `json:"request,omitempty"`
	Acknowledged bool                  `json:"acknowledged"`
	Conditions   []metav1.Condition    `json:"conditions,omitempty"`
	// Current: the status is about the spec as it is.
	Current bool `json:"current"`
	// Completed: all nodes had their turn, for the spec as it is. NeedsSomebody: it is stopped, or something is in its way. Stands: so that
	// nothing goes on by itself.
	Completed     bool `json:"completed"`
	NeedsSomebody bool `json:"needsSomebody"`
	Stands        bool `json:"stands"`
	// Deleted is since when it is being deleted: it goes when no node has a slot any more.
	Deleted *metav1.Time `json:"deleted,omitempty"`
	// Verbs are what may be asked for now.
	Verbs []string `json:"verbs,omitempty"`
	// Back is where a rollback would go; absent where none would be carried out.
	Back *Back `json:"back,omitempty"`
	// At is when that was seen.
	At metav1.Time `json:"at"`
}

// Waiting is how many nodes wait for what.
type Waiting struct {
	Reason  string `json:"reason"`
	Count   int64  `json:"count"`
	Meaning string `json:"meaning"`
}

// Request is what somebody has asked for last.
type Request struct {
	ID      string `json:"id"`
	Do      string `json:"do"`
	Handled bool   `json:"handled"`
	Refusal string `json:"refusal,omitempty"`
}

// StatusOf is the report on a rollout. Revisions are those that there are, without which a rollback is not spoken of.
func StatusOf(r *v1alpha1.Rollout, revisions Revisions, now time.Time) Status {
	st := &r.Status
	s := Status{
		Rollout: r.Name, Domain: r.Spec.Domain, Phase: string(st.Phase), Reason: st.Reason, Message: st.Message, Revision: st.Revision, Stage: st.Stage,
		ExpectedEnd: st.ExpectedEnd, WorstCase: st.WorstCase, Nodes: st.Nodes, NodesOmitted: st.NodesOmitted, Acknowledged: st.Acknowledged,
		Conditions: st.Conditions, Deleted: r.DeletionTimestamp, Current: st.ObservedGeneration == r.Generation && st.Phase != "", At: metav1.NewTime(now.UTC().Truncate(time.Second)),
	}
	if s.Phase == "" {
		s.Phase, s.Message = "NotSeen", "no controller has looked at it yet: see \"kubectl belay doctor\""
	}
	if st.Counts != nil {
		s.Counts = *st.Counts
	}
	if st.Rollback != nil {
		s.Rollback = st.Rollback.Number
	}
	if v := r.Spec.Verb; v != nil {
		s.Request = &Request{ID: v.Request, Do: string(v.Do), Handled: st.HandledRequest == v.Request}
		if s.Request.Handled {
			s.Request.Refusal = st.Refusal
		}
	}
	for _, w := range st.Waiting {
		what, _ := view.Meaning(rollout.Reason(w.Reason))
		s.Waiting = append(s.Waiting, Waiting{Reason: w.Reason, Count: w.Count, Meaning: what})
	}
	s.judge(r, revisions)
	return s
}

// judge says whether it goes on, and what may be asked for.
func (s *Status) judge(r *v1alpha1.Rollout, revisions Revisions) {
	phase := rollout.Phase(r.Status.Phase)
	s.Completed = s.Current && phase == rollout.Completed
	stopped := phase == rollout.Frozen || phase == rollout.Paused || phase == rollout.Aborted
	s.NeedsSomebody = s.Current && (stopped || meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionStalled) ||
		meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionValid))
	s.Stands = s.NeedsSomebody && !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionProgressing)
	for _, rule := range rollout.Verbs() {
		if rule.In == phase {
			s.Verbs = append(s.Verbs, strings.ToLower(string(rule.Do)))
		}
	}
	if phase == "" || s.Deleted != nil || revisions == nil {
		return
	}
	if back, err := BackOf(r, revisions); err == nil {
		s.Back, s.Verbs = back, append(s.Verbs, verbRollback)
	}
}

// verbRollback is the one verb that is typed with the entry that it goes to.
const verbRollback = "rollback"

// Troubles are the conditions that are not as they should be.
func (s Status) Troubles() (all []metav1.Condition) {
	for _, c := range s.Conditions {
		switch c.Type {
		case v1alpha1.ConditionValid:
			if c.Status == metav1.ConditionFalse {
				all = append(all, c)
			}
		case v1alpha1.ConditionStalled, v1alpha1.ConditionDegraded, v1alpha1.ConditionOverlapping:
			if c.Status == metav1.ConditionTrue {
				all = append(all, c)
			}
		}
	}
	return all
}

func progress(c v1alpha1.RolloutCounts) string {
	if c.Selected == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d of %s done: %s", page.Bar(c.Done, c.Selected, barWidth), c.Done, page.Nodes(c.Selected), tally(c))
}

// barWidth is how wide the progress is shown.
const barWidth = 32

// Text is the report for people.
func (s Status) Text() string {
	now := s.At.Time
	head := page.Table{}
	head.Factf("Rollout", "%s, in domain %s", s.Rollout, s.Domain)
	head.Fact("Phase", s.phase())
	head.Fact("Message", s.Message)
	head.Fact("Deleted", s.deletion())
	head.Fact("Revision", s.revision())
	head.Fact("Stage", s.stage())
	c := s.Counts
	head.Fact("Progress", progress(c))
	if s.ExpectedEnd != nil && !s.Completed {
		head.Fact("Expected end", page.Ago(s.ExpectedEnd.Time, now))
	}
	if s.WorstCase != nil && !s.Completed {
		head.Fact("Worst case", s.WorstCase.Message)
	}
	head.Fact("Request", s.request())
	for _, c := range s.Troubles() {
		text := fmt.Sprintf("%s, %s since %s", strings.ToLower(string(c.Status)), c.Reason, page.Ago(c.LastTransitionTime.Time, now))
		if c.Message != s.Message {
			text += ": " + c.Message
		}
		head.Fact(c.Type, text)
	}
	lines := commands(s.Verbs, s.Rollout, "")
	if s.Back != nil {
		lines = append(lines, s.Back.Line(s.Rollout)+"    # to "+s.Back.Revision)
	}
	head.Facts("You can", lines)
	return head.String() + s.waits() + s.nodes()
}

func (s Status) phase() string {
	text := s.Phase
	if s.Reason != "" && s.Reason != s.Phase {
		text += ", " + s.Reason
	}
	switch {
	case !s.Current && s.Phase != "NotSeen":
		text += " (of the spec before: the controller has not seen the last change yet)"
	case s.Stands:
		text += " - it does not go on by itself"
	case s.NeedsSomebody:
		text += " - something is in its way"
	}
	return text
}

// deletion says what a Rollout waits for that is being deleted: it may be for ever.
func (s Status) deletion() string {
	if s.Deleted == nil {
		return ""
	}
	return fmt.Sprintf("%s; it goes when none of its nodes has a slot. A broken one keeps it until it is mended, its Node is deleted, or somebody gives it up: kubectl belay acknowledge %s NODE",
		page.Ago(s.Deleted.Time, s.At.Time), s.Rollout)
}

func (s Status) revision() string {
	if s.Revision == nil {
		return ""
	}
	text := s.Revision.Name + " " + short(s.Revision.Digest)
	if s.Rollback > 0 {
		text += fmt.Sprintf(" (rolled back to entry %d of the history; the spec is not followed)", s.Rollback)
	}
	return text
}

func (s Status) stage() string {
	if s.Stage == nil {
		return ""
	}
	text := fmt.Sprintf("%d of %d", s.Stage.Number, s.Stage.Of)
	if s.Stage.Name != "" {
		text += ", " + s.Stage.Name
	}
	if s.Stage.SoaksUntil != nil {
		text += ", soaks until " + page.Ago(s.Stage.SoaksUntil.Time, s.At.Time)
	}
	return text
}

func (s Status) request() string {
	switch {
	case s.Request == nil:
		return ""
	case !s.Request.Handled:
		return fmt.Sprintf("%s (%s) is not answered yet", s.Request.Do, s.Request.ID)
	case s.Request.Refusal != "":
		return fmt.Sprintf("%s (%s) was refused: %s", s.Request.Do, s.Request.ID, s.Request.Refusal)
	}
	return fmt.Sprintf("%s (%s) was carried out", s.Request.Do, s.Request.ID)
}

func (s Status) waits() string {
	if len(s.Waiting) == 0 {
		return ""
	}
	t := page.Table{}
	t.Row("WAITING FOR", "NODES", "WHICH MEANS")
	for _, w := range s.Waiting {
		t.Row(w.Reason, fmt.Sprint(w.Count), w.Meaning)
	}
	return "\n" + t.String()
}

func (s Status) nodes() string {
	if len(s.Nodes) == 0 {
		return ""
	}
	t := page.Table{}
	t.Row("NODE", "STATE", "REASON", "MESSAGE")
	groups := map[v1alpha1.NodeReason][]string{}
	for _, n := range s.Nodes {
		same := v1alpha1.NodeReason{State: n.State, Reason: n.Reason, Message: n.Message}
		groups[same] = append(groups[same], n.Node)
	}
	for _, n := range s.Nodes {
		same := v1alpha1.NodeReason{State: n.State, Reason: n.Reason, Message: n.Message}
		switch names := groups[same]; {
		case len(names) < worthGrouping:
			t.Row(n.Node, orDash(n.State), orDash(n.Reason), n.Message)
		case names[0] == n.Node:
			t.Row(fmt.Sprintf("%s and %d more", n.Node, len(names)-1), orDash(n.State), orDash(n.Reason), n.Message)
		}
	}
	text := "\n" + t.String()
	if s.NodesOmitted > 0 {
		text += fmt.Sprintf("and %d more: ask with \"kubectl belay why NODE\"\n", s.NodesOmitted)
	}
	return text
}

// worthGrouping is how many nodes that are in the same state for the same reason are shown as one.
const worthGrouping = 3

// Line is the report on one line, for a watch on a pipe.
func (s Status) Line() string {
	text := fmt.Sprintf("%s  %s: %d/%d done, %s", s.At.UTC().Format("15:04:05Z"), s.phase(), s.Counts.Done, s.Counts.Selected, tally(s.Counts))
	if s.Stage != nil {
		text += "; stage " + s.stage()
	}
	if s.ExpectedEnd != nil && !s.Completed {
		text += "; should end at " + s.ExpectedEnd.UTC().Format("15:04:05Z")
	}
	return page.Cut(page.Clean(text), page.Width)
}

// Overview is a line for each of several rollouts.
func Overview(all []Status) string {
	t := page.Table{}
	t.Row("ROLLOUT", "DOMAIN", "PHASE", "DONE", "IN-FLIGHT", "FAILED", "MESSAGE")
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Rollout, b.Rollout) })
	for _, s := range all {
		failed := s.Counts.Failed + s.Counts.Broken + s.Counts.Lost
		done := fmt.Sprintf("%d/%d", s.Counts.Done, s.Counts.Selected)
		t.Row(s.Rollout, s.Domain, s.Phase, done, fmt.Sprint(s.Counts.InFlight), fmt.Sprint(failed), s.Message)
	}
	return t.String()
}

// tally names the numbers that are not zero, besides those that are done.
func tally(c v1alpha1.RolloutCounts) string {
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{
		{c.InFlight, "in flight"}, {c.Waiting, "waiting"}, {c.Deferred, "put off"}, {c.Failed, "failed"}, {c.Broken, "broken"}, {c.Lost, "lost"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return "nothing is left"
	}
	return strings.Join(parts, ", ")
}

// commands are the verbs as they are typed, but for a rollback. To acknowledge takes a node.
func commands(verbs []string, rollout, node string) (lines []string) {
	var plain []string
	for _, v := range verbs {
		switch {
		case v == verbRollback:
		case v != "acknowledge":
			plain = append(plain, v)
		case node != "":
			lines = append(lines, fmt.Sprintf("kubectl belay %s %s %s", v, rollout, node))
		}
	}
	if len(plain) > 0 {
		lines = slices.Insert(lines, 0, fmt.Sprintf("kubectl belay %s %s", strings.Join(plain, "|"), rollout))
	}
	return lines
}

// short is enough of a digest to tell it from others.
func short(digest string) string {
	const enough = len("sha256:") + 12
	if len(digest) <= enough {
		return digest
	}
	return digest[:enough] + "…"
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
