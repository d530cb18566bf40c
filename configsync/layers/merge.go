// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/fields"
	"github.com/belayproject/belay/configsync/internal/tree"
)

// The names of the usual layers, from the weakest on.
const (
	layerDefaults = "defaults" // built into the program
	Init          = "init"     // the config that the node was provisioned with
	Shared        = "shared"   // of the source; nodes have it in common
	Node          = "node"     // the node's own, on its disk
	layerFlags    = "flags"    // the command line
)

// A Layer is one document, in YAML or JSON. One that is empty says nothing.
type Layer struct {
	Name string
	Doc  []byte
}

// Merged is the result of a [Merge].
type Merged struct {
	// Doc is the document.
	Doc []byte
	// Whole names the layer that is used as it is; empty where several were merged, or none says anything.
	Whole string
	// Origins say of each value at the end of the document, lists item by item, which layer it is from. Maps come in the order of their keys.
	Origins []Origin
}

// An Origin says where a field is from.
type Origin struct {
	// Path of the field, as package fields writes it.
	Path string
	// Layer is its name.
	Layer string
}

// Merge lays documents over one another, the weakest first. The error names the layer that can't be used.
func Merge(all ...Layer) (Merged, error) {
	var spoken []Layer
	var values []map[string]any
	for _, l := range all {
		if tree.Empty(l.Doc) {
			continue
		}
		v, err := read(l.Doc)
		if err != nil {
			return Merged{}, fmt.Errorf("layer %q: %w", l.Name, err)
		}
		spoken, values = append(spoken, l), append(values, v)
	}
	if err := agree(spoken, values); err != nil {
		return Merged{}, err
	}
	result := map[string]any{}
	for i, v := range values {
		if i == 0 {
			result = v
			continue
		}
		result = over(result, v)
	}
	m := Merged{Doc: []byte("{}")}
	origins(nil, "", result, func(path []step, text string) {
		m.Origins = append(m.Origins, Origin{text, last(spoken, values, path)})
	})
	switch len(spoken) {
	case 0:
		return m, nil
	case 1:
		m.Doc, m.Whole = bytes.Clone(spoken[0].Doc), spoken[0].Name
		return m, nil
	}
	var err error
	if m.Doc, err = written(result); err != nil {
		return Merged{}, err
	}
	if _, err := configsync.Gate(m.Doc, configsync.GateLimits{Bytes: maxMerged, Nodes: maxMerged}); err != nil {
		return Merged{}, fmt.Errorf("the layers together: %w", err) // such as two keys that differ in case
	}
	return m, nil
}

// maxMerged bounds the merged document, in bytes and nodes; each layer has its own, tighter limits.
const maxMerged = 8 << 20

// read gives the value of a layer.
func read(doc []byte) (map[string]any, error) {
	v, err := tree.Read(doc)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("document must be a map")
	}
	return m, nil
}

// agree checks that all layers that name a kind name the same.
func agree(spoken []Layer, values []map[string]any) error {
	for _, field := range []string{"apiVersion", "kind"} {
		first := -1
		for i, v := range values {
			said, ok := v[field]
			switch {
			case !ok:
			case first < 0:
				if _, text := said.(string); !text {
					return fmt.Errorf("layer %q: field %q must be a string", spoken[i].Name, field)
				}
				first = i
			case said != values[first][field]:
				return fmt.Errorf("layer %q: field %q must be that of layer %q", spoken[i].Name, field, spoken[first].Name)
			}
		}
	}
	return nil
}

// over gives a map with another one laid over it, of which neither is changed.
func over(below, above map[string]any) map[string]any {
	out := make(map[string]any, len(below)+len(above))
	maps.Copy(out, below)
	for k, v := range above {
		inner, _ := out[k].(map[string]any)
		switch x := v.(type) {
		case nil:
			delete(out, k)
		case map[string]any:
			out[k] = over(inner, x)
		default:
			out[k] = withoutNulls(v)
		}
	}
	return out
}

// withoutNulls is a value without the fields that are null: they take away what is below, and there is nothing.
func withoutNulls(v any) any {
	switch x := v.(type) {
	case map[string]any:
		return over(nil, x)
	case []any:
		out := make([]any, len(x))
		for i, item := range x {
			out[i] = withoutNulls(item)
		}
		return out
	}
	return v
}

// A step is a key of a map, or a place in a list.
type step struct {
	key string
	at  int // -1 for a key
}

// origins visits the ends of a value.
func origins(path []step, text string, v any, visit func([]step, string)) {
	switch x := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			origins(append(path, step{k, -1}), fields.Key(text, k), x[k], visit)
		}
		if len(x) > 0 || len(path) == 0 {
			return
		}
	case []any:
		for i, item := range x {
			origins(append(path, step{"", i}), fields.Place(text, i), item, visit)
		}
		if len(x) > 0 {
			return
		}
	}
	visit(path, text)
}

// last names the strongest layer that has a path: what it says there is what counts.
func last(spoken []Layer, values []map[string]any, path []step) string {
	for i, v := range slices.Backward(values) {
		if has(v, path) {
			return spoken[i].Name
		}
	}
	return ""
}

func has(v any, path []step) bool {
	for _, s := range path {
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[s.key]
			if !ok || s.at >= 0 {
				return false
			}
			v = next
		case []any:
			if s.at < 0 || s.at >= len(x) {
				return false
			}
			v = x[s.at]
		default:
			return false
		}
	}
	return true
}

// written gives the document of a value.
func written(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("writing the merged document: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
