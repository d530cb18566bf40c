// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// decoder decodes configs of one kind.
type decoder[C any] struct {
	kind     Kind
	complete bool // C has the fields apiVersion and kind
}

func hasKind(t reflect.Type) bool {
	t = pointedTo(t)
	fields := fieldsOf(t)
	return fields == nil || decodesItself(t) || fields["apiVersion"].known && fields["kind"].known
}

// decode returns the config, or an error that names the operation and what it was about.
func (d decoder[C]) decode(op, name string, desired Desired) (C, error) {
	c, err := d.config(desired.Config)
	if err == nil {
		return c, nil
	}
	if name != "" {
		op = fmt.Sprintf("%s %q", op, name)
	}
	var none C
	if !d.complete {
		return none, Errorf(Internal, "%s: config type %T has no fields apiVersion and kind: embed provider.Kind", op, none)
	}
	return none, Errorf(InvalidConfig, "%s: config %w", op, err)
}

func (d decoder[C]) config(doc []byte) (C, error) {
	var c C
	if !d.complete {
		return c, errors.New("has no kind")
	}
	if err := d.head(doc); err != nil {
		return c, err
	}
	if err := check(doc, reflect.TypeFor[C]()); err != nil {
		return c, err
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, decodeError(err)
	}
	return c, complete(&c)
}

// complete has a config default and validate itself, by methods of *C, or of C where that is a pointer.
func complete[C any](c *C) error {
	for _, v := range []any{c, *c} {
		if d, ok := v.(interface{ Default() }); ok {
			d.Default()
			break
		}
	}
	for _, v := range []any{c, *c} {
		if v, ok := v.(interface{ Validate() error }); ok {
			if err := v.Validate(); err != nil {
				return fmt.Errorf("is not valid: %w", err)
			}
			break
		}
	}
	return nil
}

// head checks that the document is an object of the kind. It comes first, as fields of another kind say nothing.
func (d decoder[C]) head(doc []byte) error {
	if len(bytes.TrimSpace(doc)) == 0 {
		return fmt.Errorf("is empty: want an object with apiVersion %q and kind %q", d.kind.APIVersion, d.kind.Kind)
	}
	if !utf8.Valid(doc) {
		return errors.New("is not valid UTF-8: want JSON")
	}
	var (
		top    map[string]json.RawMessage
		syntax *json.SyntaxError
	)
	if err := json.Unmarshal(doc, &top); errors.As(err, &syntax) {
		return fmt.Errorf("is not one JSON document, at byte %d of %d: %w", syntax.Offset, len(doc), syntax)
	}
	if s := shape(doc); s != "an object" {
		return fmt.Errorf("is %s: want an object with apiVersion %q and kind %q", s, d.kind.APIVersion, d.kind.Kind)
	}
	if err := is(top, "apiVersion", d.kind.APIVersion); err != nil {
		return err
	}
	return is(top, "kind", d.kind.Kind)
}

// is checks a field of the head.
func is(top map[string]json.RawMessage, field, want string) error {
	raw, ok := top[field]
	if !ok {
		return fmt.Errorf("field %q is missing: want %q", field, want)
	}
	var got string
	if shape(raw) == "null" || json.Unmarshal(raw, &got) != nil {
		return fmt.Errorf("field %q is %s: want %q", field, shape(raw), want)
	}
	if got != want {
		return fmt.Errorf("field %q is %.80q: want %q", field, got, want)
	}
	return nil
}

// decodeError keeps the path and the type of an error and drops the value. It is about what the walk has let pass.
func decodeError(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Errorf("field %q doesn't fit: want %s", clipped(wrong.Field), wants(wrong.Type))
	}
	return errors.New("doesn't fit its type: a field has a value of the wrong form")
}
