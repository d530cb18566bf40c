// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/belayproject/belay/lkg"
)

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
	// Origins says which layer has set each field of the config under key of o, by path. What it leaves out has no origin but the
	// config itself. It must hold no value, and must not fail where Decode succeeds.
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
