// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// walk goes through a valid document beside the type that it will be decoded into. It finds what
// encoding/json takes, and what encoding/json cannot tell the place of.
type walk struct {
	public bool // what a type says of its own value is kept
	dec    *json.Decoder
	path   []string
	fields map[reflect.Type]map[string]reflect.Type // what fieldsOf gave
}

func newWalk(doc []byte, public bool, path []string) *walk {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber() // no number is too big to be walked past
	return &walk{public: public, dec: dec, path: path, fields: map[reflect.Type]map[string]reflect.Type{}}
}

// value checks the next value. A nil type means that anything goes, but nothing twice.
func (w *walk) value(t reflect.Type) error {
	if t = pointedTo(t); t != nil && (decodesItself(t) || !isContainer(t)) {
		return w.tryWhole(t)
	}
	token, err := w.dec.Token()
	if err != nil {
		return w.badDocument(err)
	}
	switch {
	case token == json.Delim('{') && fits(t, reflect.Struct, reflect.Map):
		return w.walkObject(t)
	case token == json.Delim('[') && fits(t, reflect.Slice, reflect.Array):
		return w.walkList(t)
	case t == nil || token == nil: // null leaves a field as it is
		return nil
	}
	return w.wrongShape(shapeOf(token), wants(t))
}

func fits(t reflect.Type, kinds ...reflect.Kind) bool {
	return t == nil || slices.Contains(kinds, t.Kind())
}

// tryWhole has a type try the next value that has no fields of its own or decodes itself. An error of its own
// may show the value.
func (w *walk) tryWhole(t reflect.Type) error {
	var raw json.RawMessage
	if err := w.dec.Decode(&raw); err != nil {
		return w.badDocument(err)
	}
	if err := json.Unmarshal(raw, reflect.New(t).Interface()); err != nil {
		wrong := w.wrongShape(Shape(raw), wants(t))
		if w.public {
			return fmt.Errorf("%w: %w", wrong, err)
		}
		return wrong
	}
	return newWalk(raw, w.public, w.path).value(nil)
}

func (w *walk) walkObject(t reflect.Type) error {
	fields := w.fieldsOf(t)
	seen := map[string]bool{}
	for w.dec.More() {
		token, err := w.dec.Token()
		if err != nil {
			return w.badDocument(err)
		}
		name, _ := token.(string) // names are strings
		w.path = append(w.path, "."+name)
		if seen[name] {
			return fmt.Errorf("field %q stands twice: want it once", w.at())
		}
		seen[name] = true
		member, known := fields[name]
		switch {
		case fields != nil && !known:
			return w.unknownField(fields, name)
		case t != nil && t.Kind() == reflect.Map:
			member = t.Elem()
		}
		if err := w.value(member); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
	}
	return w.end()
}

func (w *walk) walkList(t reflect.Type) error {
	for i := 0; w.dec.More(); i++ {
		w.path = append(w.path, "["+strconv.Itoa(i)+"]")
		if t != nil && t.Kind() == reflect.Array && i >= t.Len() {
			return fmt.Errorf("field %q is too much: want a list of %d", w.at(), t.Len())
		}
		var elem reflect.Type
		if t != nil {
			elem = t.Elem()
		}
		if err := w.value(elem); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
	}
	return w.end()
}

func (w *walk) end() error {
	if _, err := w.dec.Token(); err != nil {
		return w.badDocument(err)
	}
	return nil
}

func (w *walk) fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	if _, ok := w.fields[t]; !ok {
		w.fields[t] = fieldsOf(t)
	}
	return w.fields[t]
}

// maxNames is how many fields an error lists.
const maxNames = 32

// unknownField names the field that differs in case alone, or all there are.
func (w *walk) unknownField(fields map[string]reflect.Type, name string) error {
	var all []string
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		if strings.EqualFold(f, name) {
			return fmt.Errorf("field %q is not known: want %q", w.at(), f)
		}
		all = append(all, strconv.Quote(f))
	}
	switch {
	case len(all) == 0:
		all = []string{"no field there"}
	case len(all) > maxNames:
		all = []string{fmt.Sprintf("one of %d others", len(all))}
	}
	return fmt.Errorf("field %q is not known: want %s", w.at(), strings.Join(all, ", "))
}

func (w *walk) wrongShape(is, want string) error {
	if len(w.path) == 0 {
		return fmt.Errorf("document is %s: want %s", is, want)
	}
	return fmt.Errorf("field %q is %s: want %s", w.at(), is, want)
}

func (w *walk) badDocument(err error) error {
	return fmt.Errorf("document is not valid JSON after byte %d: %w", w.dec.InputOffset(), err)
}

// at returns where the walk is, as "disks[2].size".
func (w *walk) at() string { return clipped(strings.TrimPrefix(strings.Join(w.path, ""), ".")) }

// clipped keeps an error short whatever the names in a document are.
func clipped(path string) string {
	const most = 200
	if len(path) <= most {
		return path
	}
	return "..." + strings.ToValidUTF8(path[len(path)-most:], "")
}

func pointedTo(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer && !decodesItself(t) {
		t = t.Elem()
	}
	return t
}

func decodesItself(t reflect.Type) bool {
	for _, p := range []reflect.Type{t, reflect.PointerTo(t)} {
		if p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
			return true
		}
	}
	return false
}

// isContainer reports whether values of a type have fields or elements to walk through. Bytes are a string.
func isContainer(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Array:
		return true
	case reflect.Slice:
		return t.Elem().Kind() != reflect.Uint8
	}
	return false
}
