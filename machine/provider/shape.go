// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// field is one of a struct as encoding/json sees it. Its type is nil where the walk has to let anything pass.
type field struct {
	known bool
	t     reflect.Type
}

// fieldsOf gives the fields of a struct by name, those of embedded structs included, or nil for another type. Where several have one name, as only the
// decoder knows which counts, all is let pass for it to judge.
func fieldsOf(t reflect.Type) map[string]field {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	fields := map[string]field{}
	collect(t, fields, map[reflect.Type]bool{})
	return fields
}

func collect(t reflect.Type, fields map[string]field, visited map[reflect.Type]bool) {
	if visited[t] {
		return
	}
	visited[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Tag.Get("json") == "-" {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if f.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			collect(inner, fields, visited)
			continue
		}
		if !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		own := field{true, f.Type}
		if _, twice := fields[name]; twice || strings.Contains(options, "string") {
			own.t = nil
		}
		fields[name] = own
	}
}

// shape says what a value of valid JSON is, without saying it.
func shape(raw []byte) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	token, _ := dec.Token()
	return shapeOf(token)
}

func shapeOf(token json.Token) string {
	switch v := token.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return shapeOfNumber(v.String())
	case string:
		return fmt.Sprintf("a string of %d bytes", len(v))
	case json.Delim:
		if v == '{' {
			return "an object"
		}
	}
	return "a list"
}

func shapeOfNumber(n string) string {
	digits := strings.TrimPrefix(n, "-")
	switch {
	case strings.ContainsAny(n, ".eE"):
		return "a number with a fraction or an exponent"
	case digits != n:
		return fmt.Sprintf("a negative number of %d digits", len(digits))
	}
	return fmt.Sprintf("a number of %d digits", len(digits))
}

// wants says what fits a type.
func wants(t reflect.Type) string {
	if t == nil {
		return "any value"
	}
	if decodesItself(t) {
		return "a valid " + strings.TrimPrefix(t.String(), "*")
	}
	switch k := t.Kind(); k {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		most := uint64(1)<<(t.Bits()-1) - 1
		return fmt.Sprintf("a whole number from %d to %d", -int64(most)-1, most)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return fmt.Sprintf("a whole number from 0 to %d", ^uint64(0)>>(64-t.Bits()))
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		if k == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return "a string in base64"
		}
		return "a list"
	}
	return "a value of type " + t.String()
}
