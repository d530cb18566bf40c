// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/belayproject/belay/internal/strictjson"
)

// decoder decodes configs of one kind.
type decoder[C any] struct {
	kind     Kind
	complete bool // C has the fields apiVersion and kind
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
	if err := strictjson.Decode(doc, &c); err != nil {
		return c, err
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
	if s := strictjson.Shape(doc); s != "an object" {
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
	if strictjson.Shape(raw) == "null" || json.Unmarshal(raw, &got) != nil {
		return fmt.Errorf("field %q is %s: want %q", field, strictjson.Shape(raw), want)
	}
	if got != want {
		return fmt.Errorf("field %q is %.80q: want %q", field, got, want)
	}
	return nil
}
