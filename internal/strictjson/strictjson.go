// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Decode decodes one JSON document into the value that into points to. A field that the type doesn't have is
// an error, and so is one whose name differs in case, or that stands twice; encoding/json takes both. Types
// that decode themselves, such as metav1.Duration, judge their own values. The error names the field's path,
// the form of what is there and what would be right, never a value. After an error what into points to is
// undefined.
func Decode(doc []byte, into any) error { return decode(doc, into, false) }

// DecodePublic is [Decode] for a document without secrets: its error has what a type that decodes itself says
// of a value.
func DecodePublic(doc []byte, into any) error { return decode(doc, into, true) }

func decode(doc []byte, into any, public bool) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("decoding into %T: must be a pointer that is not nil", into)
	}
	if !json.Valid(doc) { // it also bounds the nesting, and so the stack below
		return invalidDocument(doc)
	}
	if err := newWalk(doc, public, nil).value(v.Type().Elem()); err != nil {
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

// decodeError keeps the path and the type of an error and drops the value. It is about what the walk has let pass.
func decodeError(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Errorf("field %q doesn't fit: want %s", clipped(wrong.Field), wants(wrong.Type))
	}
	return errors.New("document doesn't fit its type: a field has a value of the wrong form")
}
