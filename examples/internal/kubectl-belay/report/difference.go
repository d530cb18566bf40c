// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// Difference is in which fields the contents of two Revisions differ.
type Difference struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Fields []Field `json:"fields"`
	// Unread says which contents could not be compared, and why.
	Unread []string `json:"unread,omitempty"`
}

// Field is one of them. A value that is not there is empty.
type Field struct {
	Path string `json:"path"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Configs reads the data of a ConfigMap.
type Configs func(ctx context.Context, namespace, name string) (map[string]string, error)

// EntriesDiffer is in which fields the Revisions of two entries of the history differ, the ConfigMaps that they name included. One that can't be read, or
// is not what it was, is left out, and named.
func EntriesDiffer(ctx context.Context, r *v1alpha1.Rollout, revisions []v1alpha1.Revision, from, to int64, configs Configs) (Difference, error) {
	var contents [2]map[string]string
	var names [2]string
	d := Difference{Fields: []Field{}}
	for i, number := range []int64{from, to} {
		revision, err := revisionOf(r, revisions, number)
		if err != nil {
			return Difference{}, err
		}
		names[i] = revision.Name
		data, err := configOf(ctx, revision, configs)
		if err != nil {
			d.Unread = append(d.Unread, err.Error())
		}
		if contents[i], err = revision.Spec.Content(data); err != nil {
			return Difference{}, err
		}
	}
	if len(d.Unread) > 0 {
		for _, c := range contents { // one side alone would look like a difference
			for part := range c {
				if strings.HasPrefix(part, configPart) {
					delete(c, part)
				}
			}
		}
	}
	d.From, d.To = names[0], names[1]
	for _, c := range rollout.Diff(contents[0], contents[1]) {
		d.Fields = append(d.Fields, Field{Path: c.Path, From: c.Before, To: c.After})
	}
	return d, nil
}

// configPart begins the parts of a content that are keys of a ConfigMap.
const configPart = "config/"

// configOf is the data of the ConfigMap that a revision names; nil if it names none.
func configOf(ctx context.Context, revision *v1alpha1.Revision, configs Configs) (map[string]string, error) {
	ref := revision.Spec.ConfigMapRef
	if ref == nil {
		return nil, nil
	}
	data, err := configs(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, fmt.Errorf("the config of Revision %q: %w", revision.Name, err)
	}
	if configsync.DigestOf(data) != revision.Spec.Digest {
		return nil, fmt.Errorf("the config of Revision %q: ConfigMap %s/%s has another content now", revision.Name, ref.Namespace, ref.Name)
	}
	return data, nil
}

func revisionOf(r *v1alpha1.Rollout, revisions []v1alpha1.Revision, number int64) (*v1alpha1.Revision, error) {
	history := r.Status.History
	i := slices.IndexFunc(history, func(e v1alpha1.HistoryEntry) bool { return e.Number == number })
	if i < 0 {
		if len(history) == 0 {
			return nil, fmt.Errorf("the history of rollout %q has no entry %d: it is empty", r.Name, number)
		}
		return nil, fmt.Errorf("the history of rollout %q has no entry %d, only %d to %d", r.Name, number, history[0].Number, history[len(history)-1].Number)
	}
	want := history[i].Revision
	j := slices.IndexFunc(revisions, func(o v1alpha1.Revision) bool { return o.Name == want.Name && o.Spec.Digest == want.Digest })
	if j < 0 {
		return nil, fmt.Errorf("entry %d was about Revision %q with digest %s, which is not in the cluster any more", number, want.Name, want.Digest)
	}
	return &revisions[j], nil
}

// Text is the report for people.
func (d Difference) Text() string {
	var text strings.Builder
	if len(d.Fields) > 0 {
		t := page.Table{}
		t.Row("FIELD", d.From, d.To)
		for _, f := range d.Fields {
			t.Row(f.Path, orDash(f.From), orDash(f.To))
		}
		text.WriteString(t.String())
	} else if len(d.Unread) == 0 {
		fmt.Fprintf(&text, "Revisions %s and %s have the same content.\n", page.Clean(d.From), page.Clean(d.To))
	}
	for _, u := range d.Unread {
		fmt.Fprintf(&text, "Not compared: %s\n", page.Clean(u))
	}
	return text.String()
}
