// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/belayproject/belay/rollout/protocol"
)

// Annotations of Nodes.
const (
	// HeldAnnotation is on a Node while it has a slot: the mark of maintenance. Its content is this package's.
	HeldAnnotation = "rollout.belay.dev/held"
	// ScaleDownAnnotation keeps the cluster-autoscaler from removing a node. It is "true" while the node has a slot, unless somebody else had
	// set it before.
	ScaleDownAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
)

// A mark is the content of [HeldAnnotation].
type mark struct {
	Attempt protocol.Attempt `json:"attempt"`
	Rollout string           `json:"rollout"`
	// From is what the node ran before, Baseline what its health was.
	From     string `json:"from,omitempty"`
	Baseline string `json:"baseline,omitempty"`
	// ScaleDown: the autoscaler's annotation is ours.
	ScaleDown bool `json:"scaleDown,omitempty"`
	there     bool
}

// markOf reads the mark. One that can't be read is there, and says nothing: it is written anew, or removed.
func markOf(annotations map[string]string) (m mark) {
	text, there := annotations[HeldAnnotation]
	if there && json.Unmarshal([]byte(text), &m) != nil {
		m = mark{}
	}
	m.there = there
	return m
}

// set is the change of annotations that makes want the mark.
func (m mark) set(annotations map[string]string, want mark) (mark, map[string]*string, error) {
	change := map[string]*string{}
	is, there := annotations[ScaleDownAnnotation]
	want.ScaleDown = m.ScaleDown && is == "true"
	if !there {
		yes := "true"
		change[ScaleDownAnnotation], want.ScaleDown = &yes, true
	}
	text, err := json.Marshal(want)
	if err != nil {
		return m, nil, fmt.Errorf("writing annotation %q: %w", HeldAnnotation, err)
	}
	held := string(text)
	change[HeldAnnotation], want.there = &held, true
	return want, change, nil
}

// drop is the change of annotations that removes the mark, and the autoscaler's as far as it is ours and as we have set it.
func (m mark) drop(annotations map[string]string) map[string]*string {
	change := map[string]*string{HeldAnnotation: nil}
	if m.ScaleDown && annotations[ScaleDownAnnotation] == "true" {
		change[ScaleDownAnnotation] = nil
	}
	return change
}

// marked makes sure that the node carries the mark of its slot, and reports whether it does. The baseline is recorded with the first attempt
// in the slot.
func (p *pass) marked(n *nodeView, s *protocol.Slot) bool {
	want := mark{Attempt: s.Attempt, Rollout: s.Rollout, From: n.mark.From, Baseline: n.mark.Baseline}
	if n.mark.there && n.mark.Attempt == want.Attempt && n.mark.Rollout == want.Rollout {
		return true
	}
	if n.mark.Rollout != want.Rollout {
		var err error
		if want.From, want.Baseline, err = p.before(n); err != nil {
			p.note("controller: recording the health of node %q", err, n.Name)
			return false
		}
	}
	next, change, err := n.mark.set(n.Annotations, want)
	if err == nil {
		err = p.annotate(n, change)
	}
	if err != nil {
		p.note("controller: marking node %q", err, n.Name)
		return false
	}
	n.mark = next
	return true
}

// unmark removes the mark of a node that has no slot.
func (p *pass) unmark(n *nodeView) {
	if err := p.annotate(n, n.mark.drop(n.Annotations)); err != nil {
		p.note("controller: removing the mark of node %q", err, n.Name)
		return
	}
	n.mark = mark{}
}

// before is what is to be known of a node when it comes back.
func (p *pass) before(n *nodeView) (from, baseline string, err error) {
	if n.shadow != nil {
		from = n.shadow.Runs.Name
	}
	if h := p.c.o.Health; h != nil {
		err = p.call(func(ctx context.Context) (err error) { baseline, err = h.Baseline(ctx, n.Node); return err })
	}
	return from, baseline, err
}

func (p *pass) annotate(n *nodeView, change map[string]*string) error {
	return p.call(func(ctx context.Context) error {
		next, err := p.c.o.Fleet.Annotate(ctx, n.Node, change)
		if err == nil {
			n.Node = next
		}
		return err
	})
}
