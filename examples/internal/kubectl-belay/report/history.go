// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// History is what a rollout was about, in order.
type History struct {
	Rollout string                  `json:"rollout"`
	Entries []v1alpha1.HistoryEntry `json:"entries"`
}

// HistoryOf is the history of a rollout.
func HistoryOf(r *v1alpha1.Rollout) History {
	return History{Rollout: r.Name, Entries: append([]v1alpha1.HistoryEntry{}, r.Status.History...)}
}

// Text is the report for people.
func (h History) Text() string {
	if len(h.Entries) == 0 {
		return fmt.Sprintf("Rollout %s has no history: it has not begun.\n", page.Clean(h.Rollout))
	}
	t := page.Table{}
	t.Row("NUMBER", "REVISION", "STARTED", "ENDED", "RESULT", "DONE", "FAILED", "BY", "NOTES")
	for i := range h.Entries {
		e := &h.Entries[i]
		ended, result, done, failed := "-", cmp.Or(string(e.Result), "under way"), "-", "-"
		if e.Ended != nil {
			ended = e.Ended.UTC().Format("2006-01-02 15:04Z")
		}
		if c := e.Counts; c != nil {
			done, failed = fmt.Sprintf("%d/%d", c.Done, c.Selected), fmt.Sprint(c.Failed+c.Broken+c.Lost)
		}
		t.Row(fmt.Sprint(e.Number), e.Revision.Name, e.Started.UTC().Format("2006-01-02 15:04Z"), ended, result, done, failed, orDash(e.By), notes(e))
	}
	return t.String()
}

func notes(e *v1alpha1.HistoryEntry) string {
	var all []string
	if e.RollbackTo > 0 {
		all = append(all, fmt.Sprintf("back to %d", e.RollbackTo))
	}
	if e.Irreversible {
		all = append(all, "irreversible")
	}
	for _, g := range e.Groups {
		all = append(all, fmt.Sprintf("group %s: %s", g.Name, g.Revision.Name))
	}
	if len(e.FailedNodes) > 0 {
		all = append(all, "failed on "+strings.Join(e.FailedNodes, ", "))
	}
	return orDash(strings.Join(all, "; "))
}

// Back is the entry of the history that a rollback goes back to if none is named.
type Back struct {
	Number   int64  `json:"number"`
	Revision string `json:"revision"`
}

// Revisions finds a Revision by name.
type Revisions func(name string) (*v1alpha1.Revision, bool)

// BackOf is where a rollback goes if no entry is named. The error says why there is no such entry.
func BackOf(r *v1alpha1.Rollout, revisions Revisions) (*Back, error) {
	entry, why := v1alpha1.EntryBefore(r, revisions)
	if entry == nil {
		return nil, fmt.Errorf("there is nothing for rollout %q to go back to: %s; an entry of its history can be named with --to", r.Name, why)
	}
	return &Back{Number: entry.Number, Revision: entry.Revision.Name}, nil
}

// Line is the rollback as it is typed.
func (b *Back) Line(rollout string) string {
	return fmt.Sprintf("kubectl belay rollback %s --to=%d", rollout, b.Number)
}
