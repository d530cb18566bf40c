// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/lkg"
)

// An Explanation says what is on record and what the next planned start would do with it.
type Explanation struct {
	// State is what is on record, damage included.
	State lkg.State
	// Next is the verdict of a start that happens now and is on record.
	Next lkg.Verdict
	// Limits are those of the assigned config, within the operator's bounds; zero where it can't be loaded.
	Limits lkg.Limits
	// Fields are those of the config that the next start would use, by path, with their origins and without their values.
	// At most [maxFields] are told. Built-in defaults and what can't be read have none.
	Fields []Field
}

// Explain reads the records through g and says what the next start would do, by the function that decides there. It
// writes nothing and may run beside a live Syncer. Of o it uses Version, Key, Codec, Validators, Inspectors, Changes,
// Proofs, Init, Default, Bounds and Policy; no Proof runs anything where it has a Recall. A Codec that is also
// [Origins] says where the fields come from. A local config that is not good is in Next.Refuse.
func Explain[T any](ctx context.Context, g lkg.Getter, o Options[T]) (Explanation, error) {
	if err := option.CheckRequired("configsync.Explain", "g", g, "see checkpoint.OpenReader"); err != nil {
		return Explanation{}, err
	}
	o.Store, o.Source, o.Proofs = readOnly{nowhere{}, g}, nil, recallProofs(o.Proofs, g)
	o, err := o.withDefaults()
	if err != nil {
		return Explanation{}, err
	}
	st, err := lkg.Load(ctx, g, o.Version)
	if err != nil {
		return Explanation{}, err
	}
	b := newBook(newChecker(&o))
	b.judgeAgain(ctx, &st)
	v := lkg.Decide(lkg.Input{State: st, Recorded: true, Limits: b.limits, Policy: o.Policy},
		func(r lkg.Ref) lkg.Check { return b.judgeConfig(ctx, &st, r) })
	return Explanation{State: st, Next: v, Limits: b.limits(st.Current.Ref), Fields: b.fields(v)}, nil
}

// readOnly reads through a Getter and keeps nothing.
type readOnly struct {
	nowhere
	g lkg.Getter
}

func (r readOnly) Get(ctx context.Context, stream string) ([]byte, error) {
	return r.g.Get(ctx, stream)
}

// maxFields bounds the fields of an [Explanation].
const maxFields = 1000

// maxPath bounds the path of a field, in bytes: names of a payload may be long.
const maxPath = 256

// A Field is one that a config sets.
type Field struct {
	// Path is the names on the way to the field, with dots between. A list is one field.
	Path string `json:"path"`
	// Origin says what set it: a layer, or the config as a whole.
	Origin string `json:"origin"`
}

// Origins is what a [Codec] has too that makes configs out of several layers.
type Origins interface {
	// Origins says which layer has set each field of the config under key of o, by path. What it leaves out has no origin
	// but the config itself. It must hold no value, and must not fail where Decode succeeds.
	Origins(key string, o Object) (map[string]string, error)
}

// fields are those of the config that v uses.
func (b *book[T]) fields(v lkg.Verdict) []Field {
	if v.Role == "" {
		return nil
	}
	a := b.active(v)
	var layers map[string]string
	if c, ok := b.checker.codec.(Origins); ok {
		layers, _ = c.Origins(a.Key, a.Object) // without it, the origin is the config as a whole
	}
	return originsOf(pathsOf(a.Object.Data[a.Key]), wholeOf(a.Ref, v.Origin), layers)
}

// wholeOf names a config as the origin of its fields.
func wholeOf(r lkg.Ref, o lkg.Origin) string {
	if r.IsLocal() {
		return "the local config (" + string(o) + ")"
	}
	return fmt.Sprintf("ConfigMap %s/%s (UID: %s)", r.Namespace, r.Name, r.UID)
}

// originsOf joins the paths of a document with those that layers know, in order. It is pure.
func originsOf(paths []string, whole string, layers map[string]string) []Field {
	origins := map[string]string{}
	for _, p := range paths {
		origins[p] = whole
	}
	maps.Copy(origins, layers)
	var out []Field
	for _, p := range slices.Sorted(maps.Keys(origins)) {
		if len(out) == maxFields {
			break
		}
		out = append(out, Field{Path: p, Origin: origins[p]})
	}
	return out
}

// pathsOf are the paths of a document that passes the gate; none of another.
func pathsOf(text string) []string {
	doc, err := Gate([]byte(text), GateLimits{})
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return paths(nil, "", v)
}

// paths adds those of v, which lies at prefix. The gate bounds how deep it goes.
func paths(to []string, prefix string, v any) []string {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 {
		if prefix == "" || len(prefix) > maxPath {
			return to
		}
		return append(to, prefix)
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		p := name
		if prefix != "" {
			p = prefix + "." + name
		}
		to = paths(to, p, m[name])
	}
	return to
}
