// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync/internal/tree"
)

// C-13: numbers, null and empty lists are read as they are written.
func TestRead(t *testing.T) {
	for text, want := range map[string]any{
		"a: 12345678901234567890": map[string]any{"a": json.Number("12345678901234567890")},
		`{"a": [], "b": null}`:    map[string]any{"a": []any{}, "b": nil},
		"a: {b: [x, true]}":       map[string]any{"a": map[string]any{"b": []any{"x", true}}},
		"[1]":                     []any{json.Number("1")},
	} {
		if got, err := tree.Read([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Read(%q) = %#v, %v, want %#v", text, got, err, want)
		}
	}
	for _, text := range []string{"a: &secret b", "secret: 1\nsecret: 2", "a: 'secret"} {
		if got, err := tree.Read([]byte(text)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("Read(%q) = %v, %v, want an error without what is in it", text, got, err)
		}
	}
	if !tree.Empty([]byte(" \n\t")) || tree.Empty([]byte("{}")) {
		t.Error("a document of spaces alone says nothing, an empty map says so")
	}
}
