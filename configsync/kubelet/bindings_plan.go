// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// asideDir is where files go, below the root directory: on the same file system, so that one rename moves a file
// whole.
const asideDir = "belay-aside"

// keptAside bounds the files that are kept under one name, and keptInAll those under all.
const (
	keptAside = 8
	keptInAll = 512
)

// A boundRecord is what is on record about the files that bind a config.
type boundRecord struct {
	// Values are those of the config that the kubelet was started with last, by the name of the binding.
	Values map[string]boundValue `json:"values,omitempty"`
	// Aside are the files that were moved, the oldest first.
	Aside []asideFile `json:"aside,omitempty"`
	// Number is that of the last file that was moved, Epoch that of this version of the record.
	Number int `json:"number,omitempty"`
	Epoch  int `json:"epoch,omitempty"`
	// Newest is set in what was written while there were no records: it is newer than each of them.
	Newest bool `json:"newest,omitempty"`
	// Intent is what was begun, and is perhaps done.
	Intent *boundIntent `json:"intent,omitempty"`
}

// An asideFile is a file that was moved aside.
type asideFile struct {
	// Binding and File are the names where it was, Name is that in the directory for them.
	Binding string `json:"binding"`
	File    string `json:"file"`
	Name    string `json:"name"`
	// Value is what it was written under; zero where that is not known: then it does not return.
	Value boundValue `json:"value"`
}

// A boundIntent is a set of moves, and the record that is true once they are done.
type boundIntent struct {
	Moves []fileMove  `json:"moves"`
	Next  boundRecord `json:"next"`
}

// A fileMove is a file below the root directory that goes aside or returns.
type fileMove struct {
	// From and To are names relative to the root directory.
	From string `json:"from"`
	To   string `json:"to"`
	// Why says what the file was written under, and what the kubelet is started with.
	Why string `json:"why"`
}

// String describes the move for a log.
func (m fileMove) String() string { return fmt.Sprintf("%s to %s: %s", m.From, m.To, m.Why) }

// A lookAt is a file of a binding, as it lies on disk.
type lookAt struct {
	binding *binding
	file    string
	there   bool
	content content
}

// A boundPlan is what is to be done before a start, and the record after it. Planning it changes nothing.
type boundPlan struct {
	moves []fileMove
	next  boundRecord
}

// planMoves compares what the kubelet ran with, what it is to run with and what lies on disk. unsure says that it
// is not known what the kubelet ran with last.
func planMoves(rec boundRecord, want kubeletConfig, files []lookAt, unsure bool) boundPlan {
	p := boundPlan{next: boundRecord{
		Values: map[string]boundValue{}, Aside: slices.Clone(rec.Aside), Number: rec.Number, Epoch: rec.Epoch + 1,
	}}
	for _, b := range allBindings() {
		if v := b.valueIn(want); v != (boundValue{}) {
			p.next.Values[b.file] = v
		}
	}
	for _, f := range files {
		b, wanted := f.binding, p.next.Values[f.binding.file]
		there := f.there
		if there {
			if label, why := b.whyAside(f.content, rec.Values[b.file], wanted, unsure); why != "" {
				p.moveAside(f, label, why)
				there = false
			}
		}
		if !there && wanted != (boundValue{}) {
			p.moveBack(f, wanted)
		}
	}
	p.dropOldest()
	return p
}

// whyAside says why a file has to go, and what it was written under; why is empty where it can stay.
func (b *binding) whyAside(c content, ran, wanted boundValue, unsure bool) (label boundValue, why string) {
	switch {
	case c.damaged:
		return boundValue{}, "it is damaged: no kubelet starts with it"
	case wanted == (boundValue{}):
		return boundValue{}, ""
	case c.policy != "" && c.policy != wanted.Policy:
		if ran.Policy == c.policy {
			label = ran
		} else if c.policy == b.usual || len(b.fields) == 0 {
			label = boundValue{Policy: c.policy}
		}
		return label, fmt.Sprintf("it was written under %q, the kubelet is started with %q", c.policy, wanted.Policy)
	case wanted.Fields == "" || ran == wanted:
		return boundValue{}, ""
	case ran == (boundValue{}) && !unsure:
		return boundValue{}, "" // the first start under this record: it is taken for the config's own
	}
	return ran, fmt.Sprintf("it was written under other values of fields beside %s, %q", b.policy.path, wanted.Policy)
}

func (p *boundPlan) moveAside(f lookAt, label boundValue, why string) {
	p.next.Number++
	name := fmt.Sprintf("%s.%d", strings.ReplaceAll(f.file, "/", "_"), p.next.Number)
	p.moves = append(p.moves, fileMove{From: f.file, To: path.Join(asideDir, name), Why: why})
	p.next.Aside = append(p.next.Aside, asideFile{Binding: f.binding.file, File: f.file, Name: name, Value: label})
}

// moveBack returns the newest file that was written under the wanted values.
func (p *boundPlan) moveBack(f lookAt, wanted boundValue) {
	for i, a := range slices.Backward(p.next.Aside) {
		if a.File == f.file && a.Value == wanted {
			p.moves = append(p.moves, fileMove{
				From: path.Join(asideDir, a.Name), To: f.file, Why: "the config that it was written under returns",
			})
			p.next.Aside = slices.Delete(p.next.Aside, i, i+1)
			return
		}
	}
}

// dropOldest drops the oldest files beyond those that are kept.
func (p *boundPlan) dropOldest() {
	p.next.Aside = slices.Delete(p.next.Aside, 0, max(0, len(p.next.Aside)-keptInAll))
	count := map[string]int{}
	for _, a := range p.next.Aside {
		count[a.File]++
	}
	p.next.Aside = slices.DeleteFunc(p.next.Aside, func(a asideFile) bool {
		if count[a.File] <= keptAside {
			return false
		}
		count[a.File]--
		return true
	})
}

// changesNothing reports whether a plan leaves disk and record as they are.
func (p boundPlan) changesNothing(rec boundRecord) bool {
	return len(p.moves) == 0 && rec.Intent == nil && maps.Equal(p.next.Values, rec.Values) &&
		len(p.next.Aside) == len(rec.Aside)
}
