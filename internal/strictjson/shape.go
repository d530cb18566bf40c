// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Shape says what a value of valid JSON is, such as "a string of 6 bytes". It does not show the value.
func Shape(raw []byte) string {
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
