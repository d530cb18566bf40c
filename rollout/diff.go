// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// A Change is one difference between the contents of two revisions.
type Change struct {
	// Path is the part of the content and the field in it, as "kubelet: evictionHard.memory", "hosts: servers[2]" or, of a part as a whole, "opaque".
	Path string
	// Before and After are the values as JSON, or what is said of a part that has no fields. Empty means that it is not there. They are as secret as the
	// contents.
	Before, After string
}

// String says it in one line.
func (c Change) String() string {
	switch {
	case c.Before == "":
		return c.Path + ": added " + c.After
	case c.After == "":
		return c.Path + ": removed " + c.Before
	}
	return c.Path + ": " + c.Before + " -> " + c.After
}

// Diff says what has changed from one content to another, in the order of the paths: what the entries of a history differ in. A content is its parts by
// name, as the data of a ConfigMap.
//
// Parts that are objects or lists, in JSON or YAML, are compared field by field, and lists place by place. All else is opaque: a short text is shown,
// of another one its size and the beginning of its digest. Contents that differ in nothing but how they are written have a change that says so; equal ones have none.
func Diff(before, after map[string]string) []Change {
	var d differ
	for _, part := range union(before, after) {
		was, old := before[part]
		is, still := after[part]
		if old && still && was == is {
			continue
		}
		d.part(part, was, is, old, still)
	}
	return d.changes
}

type differ struct{ changes []Change }

func (d *differ) part(name, was, is string, old, still bool) {
	a, fieldsA := parse(was)
	b, fieldsB := parse(is)
	n := len(d.changes)
	if old && still && fieldsA && fieldsB {
		d.values(name+": ", a, b)
		if len(d.changes) > n {
			return
		}
		d.changes = append(d.changes, Change{name, "the same fields", "the same fields, written in another way"})
		return
	}
	c := Change{Path: name}
	if old {
		c.Before = opaque(was)
	}
	if still {
		c.After = opaque(is)
	}
	d.changes = append(d.changes, c)
}

// parse reads an object or a list: JSON, or YAML that does not begin with a brace. Text with more than one document is opaque. Of a field that is there twice
// the last value counts, as whoever reads the config takes it or refuses it.
func parse(text string) (any, bool) {
	if strings.Contains("\n"+text, "\n---") {
		return nil, false
	}
	data, err := yaml.ToJSON([]byte(text))
	if err != nil {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // as large as they are written
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, false
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) { // there is more
		return nil, false
	}
	switch v.(type) {
	case map[string]any, []any:
		return v, true
	}
	return nil, false
}

// values compares two values that are there.
func (d *differ) values(path string, a, b any) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			for _, key := range union(x, y) {
				was, old := x[key]
				is, still := y[key]
				d.field(join(path, key), was, is, old, still)
			}
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			for i := range max(len(x), len(y)) {
				var was, is any
				if i < len(x) {
					was = x[i]
				}
				if i < len(y) {
					is = y[i]
				}
				d.field(path+"["+strconv.Itoa(i)+"]", was, is, i < len(x), i < len(y))
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		d.changes = append(d.changes, Change{strings.TrimSuffix(path, ": "), written(a), written(b)})
	}
}

// field compares two values of which one may not be there.
func (d *differ) field(path string, was, is any, old, still bool) {
	switch {
	case old && still:
		d.values(path, was, is)
	case old:
		d.changes = append(d.changes, Change{Path: path, Before: written(was)})
	default:
		d.changes = append(d.changes, Change{Path: path, After: written(is)})
	}
}

// plain are the names of fields that need no quotes.
var plain = regexp.MustCompile(`^[A-Za-z0-9_/-]+$`)

func join(path, key string) string {
	switch {
	case !plain.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case strings.HasSuffix(path, ": "):
		return path + key
	}
	return path + "." + key
}

func written(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// opaque says what there is to say of a text without fields.
func opaque(text string) string {
	const short = 64
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if len(text) <= short && utf8.ValidString(text) && !strings.ContainsFunc(text, odd) {
		return strconv.Quote(text)
	}
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%d bytes, sha256:%x…", len(text), sum[:6])
}

// union are the keys of both, in order.
func union[V any](a, b map[string]V) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}
