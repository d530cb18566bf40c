// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// The live node whose last known good config is GoodA, no longer the local one.
var (
	proven     = Node{Active: GoodA, Status: lkg.StatusTrue, Good: GoodA}
	fellBack   = Node{Active: GoodA, Status: lkg.StatusFalse, Good: GoodA}
	unclear    = Node{Active: GoodA, Status: lkg.StatusUnknown, Good: GoodA, Error: true}
	nextProven = Node{Active: GoodB, Status: lkg.StatusTrue, Good: GoodB}
	onTrial    = Node{Active: GoodB, Status: lkg.StatusTrue, Good: GoodA}
)

// quick is c with a short trial.
func quick(c ConfigMap) ConfigMap { c.Brief = true; return c }

// goodFirst is the step that gives a node a last known good config from the API server.
func goodFirst() Step {
	return Step{Name: "promoted", Do: made(quick(pinned("first", GoodA)), byUID), Fetched: GoodA, Node: proven}
}

func edited(c ConfigMap) func(context.Context, World) error {
	return func(ctx context.Context, w World) error { _, err := w.Edit(ctx, c); return err }
}

func created(c ConfigMap) func(context.Context, World) error {
	return func(ctx context.Context, w World) error { _, err := w.Create(ctx, c); return err }
}

func deleted(name string) func(context.Context, World) error {
	return func(ctx context.Context, w World) error { return w.Delete(ctx, name) }
}

// promotedRows: the ways back, where what the node falls back to is a config that was promoted.
func promotedRows() []Row {
	var r Ref
	two := ConfigMap{Name: "two", Immutable: true, Payloads: map[string]Payload{Key: Crashing, "second": GoodB}}
	first := quick(editable("edited", GoodA))
	return []Row{
		{"promoted, back by a new object", []Step{
			goodFirst(),
			{Name: "bad", Do: made(pinned("bad", Invalid), byUID), Fetched: Invalid, Node: fellBack},
			{Name: "another bad one", Do: made(pinned("worse", Undecodable), byUID), Fetched: Undecodable, Node: fellBack},
			{Name: "good", Do: made(pinned("good", GoodB), byUID), Fetched: GoodB, Node: onTrial},
		}},
		{"promoted, back from a crash by a new object", []Step{
			goodFirst(),
			{Name: "bad", Do: made(pinned("bad", Crashing), byUID), Fetched: Crashing, Node: fellBack},
			{Name: "good", Do: made(quick(pinned("good", GoodB)), byUID), Fetched: GoodB, Node: nextProven},
		}},
		{"promoted, back by another key of the same object", []Step{
			goodFirst(),
			{Name: "bad", Do: func(ctx context.Context, w World) (err error) {
				if r, err = w.Create(ctx, two); err != nil {
					return err
				}
				return w.Assign(ctx, byUID(r).Source())
			}, Fetched: Crashing, Node: fellBack},
			{Name: "good", Do: func(ctx context.Context, w World) error {
				second := byUID(r)
				second.Key = "second"
				return w.Assign(ctx, second.Source())
			}, Fetched: GoodB, Node: onTrial},
		}},
		{"promoted, back by an edit in place", []Step{
			{Name: "promoted", Do: made(first, followed), Fetched: GoodA, Node: proven},
			{Name: "bad", Do: edited(editable("edited", Undecodable)), Fetched: Undecodable, Node: fellBack},
			{Name: "bad in another way", Do: edited(editable("edited", Crashing)), Fetched: Crashing, Node: fellBack},
			{Name: "good", Do: edited(quick(editable("edited", GoodB))), Fetched: GoodB, Node: nextProven},
		}},
		{"promoted, back by undoing an edit", []Step{
			{Name: "promoted", Do: made(first, followed), Fetched: GoodA, Node: proven},
			{Name: "bad", Do: edited(editable("edited", Invalid)), Fetched: Invalid, Node: fellBack},
			{Name: "undone", Do: edited(first), Fetched: GoodA, Node: proven},
		}},
		{"promoted, back by removing the source", []Step{
			goodFirst(),
			{Name: "bad", Do: made(pinned("bad", Crashing), byUID), Fetched: Crashing, Node: fellBack},
			{Name: "none", Do: assign(""), Node: Node{Active: Local, Status: lkg.StatusTrue, Good: Local}},
		}},
		{"promoted, invalid source", []Step{
			goodFirst(),
			{Name: "invalid", Do: assign("{}"), Err: ErrInvalid, Cause: "all were nil", Node: unclear},
			{Name: "good", Do: made(pinned("good", GoodB), byUID), Fetched: GoodB, Node: onTrial},
		}},
	}
}

// recreatedRows: an object that goes away and comes back. The error is shown meanwhile and cleared afterwards (R-CS-27/33).
func recreatedRows() []Row {
	var later, again Ref
	first, other := quick(editable("followed", GoodA)), quick(editable("followed", GoodB))
	return []Row{
		{"followed, deleted, created again", []Step{
			{Name: "promoted", Do: made(first, followed), Fetched: GoodA, Node: proven},
			{Name: "deleted", Do: deleted("followed"), Err: configsync.ErrMissing, Cause: "followed", Node: unclear},
			{Name: "created again", Do: created(first), Fetched: GoodA, Node: proven},
			{Name: "deleted again", Do: deleted("followed"), Err: configsync.ErrMissing, Cause: "followed", Node: unclear},
			{Name: "created with other content", Do: created(other), Fetched: GoodB, Node: nextProven},
		}},
		{"named by digest, deleted, created again", []Step{
			goodFirst(),
			{Name: "the object comes and goes", Do: func(ctx context.Context, w World) (err error) {
				if later, err = w.Create(ctx, pinned("later", GoodB)); err != nil {
					return err
				}
				return w.Delete(ctx, "later")
			}, Fetched: GoodA, Node: proven},
			{Name: "assigned", Do: func(ctx context.Context, w World) error { return w.Assign(ctx, byDigest(later).Source()) },
				Err: configsync.ErrMissing, Cause: "later", Node: unclear},
			{Name: "created again", Do: created(pinned("later", GoodB)), Fetched: GoodB, Node: onTrial},
		}},
		{"named by UID, deleted, created again", []Step{
			{Name: "promoted", Do: made(quick(pinned("again", GoodA)), byUID), Fetched: GoodA, Node: proven},
			{Name: "deleted", Do: deleted("again"), Err: configsync.ErrMissing, Cause: "again", Node: proven},
			{Name: "created again", Do: func(ctx context.Context, w World) (err error) {
				again, err = w.Create(ctx, pinned("again", GoodB))
				return err
			}, Err: configsync.ErrMismatch, Cause: "the source names UID", Node: proven},
			{Name: "the new one is named", Do: func(ctx context.Context, w World) error { return w.Assign(ctx, byUID(again).Source()) },
				Fetched: GoodB, Node: onTrial},
		}},
	}
}
