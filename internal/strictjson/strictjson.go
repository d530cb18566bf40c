// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Decode decodes one JSON document into the struct that into points to. A field that the struct doesn't have is an error, and
// so is one whose name differs in case, or that stands twice; encoding/json takes both. Types that decode themselves, such as
// metav1.Duration, judge their own values. The error names the field's path, never a value. After an error what into points to is
// undefined.
func Decode(doc []byte, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("decoding into %T: must be a pointer that is not nil", into)
	}
	if !json.Valid(doc) { // it also bounds the nesting, and so the stack below
		return invalidDocument(doc)
	}
	c := strictness{dec: json.NewDecoder(bytes.NewReader(doc)), fields: map[reflect.Type]map[string]reflect.Type{}}
	if err := c.value(v.Type().Elem(), ""); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return decodeError(err)
	}
	return nil
}

// invalidDocument tells a document that is followed by something from one that is broken.
func invalidDocument(doc []byte) error {
	var first json.RawMessage
	if json.NewDecoder(bytes.NewReader(doc)).Decode(&first) == nil {
		return errors.New("document is not valid JSON: there is more than one value")
	}
	return errors.New("document is not valid JSON, or nested too deeply")
}

// decodeError keeps the path and the expected type of an error and drops what it says of the value.
func decodeError(err error) error {
	var typeErr *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typeErr) && typeErr.Field != "":
		return fmt.Errorf("field %q must be a %s, is a %s", typeErr.Field, typeErr.Type, firstWord(typeErr.Value))
	case errors.As(err, &typeErr):
		return fmt.Errorf("document must be a %s, is a %s", typeErr.Type, firstWord(typeErr.Value))
	}
	return errors.New("a field has a value of the wrong form")
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// strictness walks a document beside the type that it will be decoded into.
type strictness struct {
	dec    *json.Decoder
	fields map[reflect.Type]map[string]reflect.Type // what fieldsOf gave
}

// value checks the next value of the document. A nil type means that anything goes.
func (c strictness) value(t reflect.Type, path string) error {
	for t != nil && t.Kind() == reflect.Pointer && !decodesItself(t) {
		t = t.Elem()
	}
	if t != nil && decodesItself(t) {
		return c.trial(t, path)
	}
	tok, err := c.dec.Token()
	if err != nil {
		return c.invalid()
	}
	switch tok {
	case json.Delim('{'):
		return c.object(t, path)
	case json.Delim('['):
		return c.array(t, path)
	}
	return nil
}

// trial has a type that decodes itself try the next value. Its own error may show the value.
func (c strictness) trial(t reflect.Type, path string) error {
	var raw json.RawMessage
	if err := c.dec.Decode(&raw); err != nil {
		return c.invalid()
	}
	if err := json.Unmarshal(raw, reflect.New(t).Interface()); err != nil {
		want := strings.TrimPrefix(t.String(), "*")
		if path == "" {
			return fmt.Errorf("document must be a valid %s", want)
		}
		return fmt.Errorf("field %q must be a valid %s", path[1:], want)
	}
	return nil
}

func (c strictness) invalid() error {
	return fmt.Errorf("document is not valid JSON after %d bytes", c.dec.InputOffset())
}

func decodesItself(t reflect.Type) bool {
	for _, p := range []reflect.Type{t, reflect.PointerTo(t)} {
		if p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
			return true
		}
	}
	return false
}

// object checks the members of an object, up to its end.
func (c strictness) object(t reflect.Type, path string) error {
	var fields map[string]reflect.Type
	if t != nil && t.Kind() == reflect.Struct {
		if fields = c.fields[t]; fields == nil {
			fields = fieldsOf(t)
			c.fields[t] = fields
		}
	}
	seen := map[string]bool{}
	for c.dec.More() {
		tok, err := c.dec.Token()
		name, ok := tok.(string)
		if err != nil || !ok {
			return c.invalid()
		}
		child := path + "." + clipped(name)
		if seen[name] {
			return fmt.Errorf("field %q stands twice", child[1:])
		}
		seen[name] = true
		member, err := memberType(t, fields, name, child[1:])
		if err != nil {
			return err
		}
		if err := c.value(member, child); err != nil {
			return err
		}
	}
	return c.end()
}

// memberType is the type of a member of a value of type t; nil where anything goes.
func memberType(t reflect.Type, fields map[string]reflect.Type, name, path string) (reflect.Type, error) {
	switch {
	case fields != nil:
		member, ok := fields[name]
		if !ok {
			return nil, fmt.Errorf("field %q is not known%s", path, hint(fields, name))
		}
		return member, nil
	case t != nil && t.Kind() == reflect.Map:
		return t.Elem(), nil
	}
	return nil, nil
}

// hint names the field that was meant, if only case is wrong.
func hint(fields map[string]reflect.Type, name string) string {
	for f := range fields {
		if strings.EqualFold(f, name) {
			return fmt.Sprintf("; the field is %q", f)
		}
	}
	return ""
}

func (c strictness) array(t reflect.Type, path string) error {
	var elem reflect.Type
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		elem = t.Elem()
	}
	for i := 0; c.dec.More(); i++ {
		if err := c.value(elem, path+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	return c.end()
}

func (c strictness) end() error {
	if _, err := c.dec.Token(); err != nil {
		return c.invalid()
	}
	return nil
}

// clipped keeps an error short whatever the names in a document are.
func clipped(s string) string {
	if len(s) > 64 {
		return s[:61] + "..."
	}
	return s
}
