// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

var (
	onLocal  = Node{Active: Local, Status: lkg.StatusTrue}
	confused = Node{Active: Local, Status: lkg.StatusUnknown, Error: true}
	rejected = Node{Active: Local, Status: lkg.StatusFalse}
)

// digestZero is the digest of nothing that anybody has.
const digestZero = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// Rows returns all rows.
func Rows() []Row {
	var rows []Row
	for _, part := range [][]Row{emptyRows(), invalidRows(), payloadRows(), absenceRows(), identityRows(), wayBackRows(), promotedRows(), recreatedRows()} {
		rows = append(rows, part...)
	}
	return rows
}

// on is the live node that uses p and has no trouble.
func on(p Payload) Node { return Node{Active: p, Status: lkg.StatusTrue} }

func assign(source string) func(context.Context, World) error {
	return func(ctx context.Context, w World) error { return w.Assign(ctx, source) }
}

// whole is a reference to which nothing is wrong, but that its object may not exist.
func whole() Ref {
	return Ref{Namespace: "configs", Name: "pool-a", UID: "5f2d6f3e-7c1b-4a55-9d5e-0c8b6a1f2e3d", Key: Key}
}

// emptyRows: R-CS-23/29/31.
func emptyRows() []Row {
	return []Row{
		{"nil", []Step{{Name: "no source", Do: assign(""), Node: onLocal}}},
		{"null", []Step{{Name: "a source that is null", Do: assign("null"), Node: onLocal}}},
		{"all-nil", []Step{{
			Name: "no subfield", Do: assign("{}"), Err: ErrInvalid, Node: confused,
			Cause: "invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil",
		}}},
		{"all-null", []Step{{
			Name: "a subfield that is null", Do: assign(`{"configMapRef":null}`), Err: ErrInvalid, Node: confused,
			Cause: "invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil",
		}}},
		{"two subfields", []Step{{
			Name: "one known and one from a later version", Unchecked: true, Err: ErrInvalid, Node: confused,
			Do:    assign(`{"configMapRef":{"namespace":"a","name":"b","uid":"c"},"otherRef":{"name":"d"}}`),
			Cause: "exactly one subfield must be non-nil, but 2 were: configMapRef, otherRef",
		}}},
		{"unknown subfield", []Step{{
			Name: "one from a later version", Unchecked: true, Err: ErrInvalid, Node: confused,
			Do: assign(`{"otherRef":{"name":"d"}}`), Cause: `otherRef: it is a kind of source that this version doesn't know`,
		}}},
		{"not an object", []Step{{
			Name: "text", Do: assign(`"text"`), Unchecked: true, Err: ErrInvalid, Node: confused, Cause: "it must be a JSON object",
		}}},
		{"not JSON", []Step{{
			Name: "half of it", Do: assign(`{"configMapRef":`), Unchecked: true, Err: ErrInvalid, Node: confused, Cause: "it must be a JSON object",
		}}},
	}
}

// invalidRows: each field missing or malformed (R-CS-24/25/28).
func invalidRows() []Row {
	with := func(change func(*Ref)) string {
		r := whole()
		change(&r)
		return r.Source()
	}
	var rows []Row
	for _, c := range []struct {
		name, cause string
		change      func(*Ref)
	}{
		{"no namespace", "configMapRef.namespace: must not be empty", func(r *Ref) { r.Namespace = "" }},
		{"no name", "configMapRef.name: must not be empty", func(r *Ref) { r.Name = "" }},
		{"no uid", "configMapRef.uid: it must be set, or digest, or policy", func(r *Ref) { r.UID = "" }},
		{"no field", "configMapRef.namespace: must not be empty", func(r *Ref) { *r = Ref{} }},
		{"traversal in namespace", "configMapRef.namespace:", func(r *Ref) { r.Namespace = "../kube-system" }},
		{"traversal in name", "configMapRef.name:", func(r *Ref) { r.Name = "../../secrets/token" }},
		{"traversal in uid", "configMapRef.uid:", func(r *Ref) { r.UID = "../current" }},
		{"traversal in key", "configMapRef.key:", func(r *Ref) { r.Key = "../../etc/passwd" }},
		{"parent as key", "configMapRef.key:", func(r *Ref) { r.Key = ".." }},
		{"other kind", `configMapRef.kind: "Secret" must be "ConfigMap" or absent`, func(r *Ref) { r.Kind = "Secret" }},
		{"other policy", `configMapRef.policy: "Sometimes" must be "Pin", "Follow" or absent`, func(r *Ref) { r.Policy = "Sometimes" }},
		{"other digest", "configMapRef.digest:", func(r *Ref) { r.Digest = "md5:00" }},
	} {
		rows = append(rows, Row{c.name, []Step{{Name: c.name, Do: assign(with(c.change)), Err: ErrInvalid, Cause: c.cause, Node: confused}}})
	}
	return rows
}

// made is a step that creates c and assigns it as ref says.
func made(c ConfigMap, ref func(Ref) Ref) func(context.Context, World) error {
	return func(ctx context.Context, w World) error {
		r, err := w.Create(ctx, c)
		if err != nil {
			return err
		}
		return w.Assign(ctx, ref(r).Source())
	}
}

func byUID(r Ref) Ref { r.Digest = ""; return r }

func byDigest(r Ref) Ref { r.UID = ""; return r }

func followed(r Ref) Ref { return Ref{Namespace: r.Namespace, Name: r.Name, Policy: "Follow"} }

func pinned(name string, p Payload) ConfigMap {
	return ConfigMap{Name: name, Immutable: true, Payloads: map[string]Payload{Key: p}}
}

func editable(name string, p Payload) ConfigMap {
	return ConfigMap{Name: name, Payloads: map[string]Payload{Key: p}}
}

// payloadRows: what is fetched is judged by the node, not by the fetcher (R-CS-34/40/41).
func payloadRows() []Row {
	return []Row{
		{"good by uid", []Step{{Name: "assigned", Do: made(pinned("good", GoodA), byUID), Fetched: GoodA, Node: on(GoodA)}}},
		{"good by digest", []Step{{Name: "assigned", Do: made(editable("good", GoodA), byDigest), Fetched: GoodA, Node: on(GoodA)}}},
		{"good and followed", []Step{{Name: "assigned", Do: made(editable("good", GoodA), followed), Fetched: GoodA, Node: on(GoodA)}}},
		{"undecodable", []Step{{Name: "assigned", Do: made(pinned("bad", Undecodable), byUID), Fetched: Undecodable, Node: rejected}}},
		{"invalid", []Step{{Name: "assigned", Do: made(pinned("bad", Invalid), byUID), Fetched: Invalid, Node: rejected}}},
		{"mutable and pinned by uid alone", []Step{{
			Name: "assigned", Do: made(editable("good", GoodA), byUID), Err: configsync.ErrMutable, Cause: "set immutable: true on it", Node: confused,
		}}},
	}
}

// absenceRows: R-CS-27/30, and that an error is cleared when its cause is gone.
func absenceRows() []Row {
	hidden := pinned("hidden", GoodA)
	hidden.Hidden = true
	var later Ref
	return []Row{
		{"forbidden", []Step{{Name: "assigned", Do: made(hidden, byUID), Err: configsync.ErrForbidden, Cause: "hidden", Node: confused}}},
		{"assigned before it exists", []Step{
			{Name: "the object comes and goes, which tells its digest", Do: func(ctx context.Context, w World) (err error) {
				if later, err = w.Create(ctx, pinned("later", GoodA)); err != nil {
					return err
				}
				return w.Delete(ctx, "later")
			}, Node: onLocal},
			{Name: "assigned", Do: func(ctx context.Context, w World) error { return w.Assign(ctx, byDigest(later).Source()) },
				Err: configsync.ErrMissing, Cause: "later", Node: confused},
			{Name: "created", Do: func(ctx context.Context, w World) error {
				_, err := w.Create(ctx, pinned("later", GoodA))
				return err
			}, Fetched: GoodA, Node: on(GoodA)},
		}},
		{"deleted after it was adopted", []Step{
			{Name: "assigned", Do: made(pinned("gone", GoodA), byUID), Fetched: GoodA, Node: on(GoodA)},
			{Name: "deleted", Do: func(ctx context.Context, w World) error { return w.Delete(ctx, "gone") },
				Err: configsync.ErrMissing, Cause: "gone", Node: on(GoodA)},
			{Name: "source removed", Do: assign(""), Node: onLocal},
		}},
	}
}

// identityRows: R-CS-26: what is named and what is there must be the same.
func identityRows() []Row {
	var r Ref
	return []Row{
		{"recreated", []Step{
			{Name: "another object under the name", Do: func(ctx context.Context, w World) (err error) {
				if r, err = w.Create(ctx, pinned("twice", GoodA)); err != nil {
					return err
				}
				if err := w.Delete(ctx, "twice"); err != nil {
					return err
				}
				if _, err = w.Create(ctx, pinned("twice", GoodA)); err != nil {
					return err
				}
				return w.Assign(ctx, byUID(r).Source())
			}, Err: configsync.ErrMismatch, Cause: "the source names UID", Node: confused},
			{Name: "the source names its content", Do: func(ctx context.Context, w World) error {
				return w.Assign(ctx, byDigest(r).Source())
			}, Fetched: GoodA, Node: on(GoodA)},
		}},
		{"other content", []Step{{Name: "digest of something else", Do: made(pinned("other", GoodA), func(r Ref) Ref {
			r.Digest = digestZero
			return r
		}), Err: configsync.ErrMismatch, Cause: digestZero, Node: confused}}},
		{"edited in place though pinned", []Step{
			{Name: "assigned", Do: made(editable("edited", GoodA), byDigest), Fetched: GoodA, Node: on(GoodA)},
			{Name: "edited", Do: func(ctx context.Context, w World) error { _, err := w.Edit(ctx, editable("edited", GoodB)); return err },
				Err: configsync.ErrMismatch, Cause: "the source names", Node: on(GoodA)},
		}},
		{"edited in place and followed", []Step{
			{Name: "assigned", Do: made(editable("edited", GoodA), followed), Fetched: GoodA, Node: on(GoodA)},
			{Name: "edited", Do: func(ctx context.Context, w World) error { _, err := w.Edit(ctx, editable("edited", GoodB)); return err },
				Fetched: GoodB, Node: on(GoodB)},
		}},
	}
}

// wayBackRows: from a bad config to a good one by each of the ways that people take.
func wayBackRows() []Row {
	two := ConfigMap{Name: "two", Immutable: true, Payloads: map[string]Payload{Key: Undecodable, "second": GoodB}}
	var r Ref
	return []Row{
		{"back by a new object", []Step{
			{Name: "bad", Do: made(pinned("bad", Invalid), byUID), Fetched: Invalid, Node: rejected},
			{Name: "good", Do: made(pinned("good", GoodA), byUID), Fetched: GoodA, Node: on(GoodA)},
		}},
		{"back by another key of the same object", []Step{
			{Name: "bad", Do: func(ctx context.Context, w World) (err error) {
				if r, err = w.Create(ctx, two); err != nil {
					return err
				}
				return w.Assign(ctx, byUID(r).Source())
			}, Fetched: Undecodable, Node: rejected},
			{Name: "good", Do: func(ctx context.Context, w World) error {
				second := byUID(r)
				second.Key = "second"
				return w.Assign(ctx, second.Source())
			}, Fetched: GoodB, Node: on(GoodB)},
		}},
		{"back by an edit in place", []Step{
			{Name: "bad", Do: made(editable("edited", Undecodable), followed), Fetched: Undecodable, Node: rejected},
			{Name: "good", Do: func(ctx context.Context, w World) error { _, err := w.Edit(ctx, editable("edited", GoodA)); return err },
				Fetched: GoodA, Node: on(GoodA)},
		}},
		{"back by removing the source", []Step{
			{Name: "bad", Do: made(pinned("bad", Undecodable), byUID), Fetched: Undecodable, Node: rejected},
			{Name: "none", Do: assign(""), Node: onLocal},
		}},
		{"from one good config to another and back", []Step{
			{Name: "a", Do: made(pinned("a", GoodA), byUID), Fetched: GoodA, Node: on(GoodA)},
			{Name: "b", Do: made(pinned("b", GoodB), byUID), Fetched: GoodB, Node: on(GoodB)},
			{Name: "invalid source", Do: assign("{}"), Err: ErrInvalid, Cause: "all were nil", Node: Node{Active: GoodB, Status: lkg.StatusUnknown, Error: true}},
			{Name: "none", Do: assign(""), Node: onLocal},
		}},
	}
}
