// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/strictjson"
)

type part struct {
	Size int `json:"size"`
}

type document struct {
	Name  string          `json:"name"`
	Parts []part          `json:"parts,omitempty"`
	Extra map[string]part `json:"extra,omitempty"`
}

func TestEachPartOfADocumentMustBeUnderstood(t *testing.T) {
	for name, c := range map[string]struct{ doc, want string }{
		"good":              {`{"name": "secret", "parts": [{"size": 1}], "extra": {"a": {"size": 2}}}`, ""},
		"unknown":           {`{"names": "secret"}`, `field "names" is not known`},
		"unknown, deep":     {`{"parts": [{"size": 1}, {"colour": "secret"}]}`, `field "parts[1].colour" is not known`},
		"unknown, in a map": {`{"extra": {"a": {"colour": 1}}}`, `field "extra.a.colour" is not known`},
		"another case":      {`{"Name": "secret"}`, `field "Name" is not known: want "name"`},
		"twice":             {`{"name": "secret", "name": "secret"}`, `field "name" stands twice`},
		"twice in a map":    {`{"extra": {"a": {}, "a": {}}}`, `field "extra.a" stands twice`},
		"wrong type":        {`{"parts": [{"size": "secret"}]}`, `"parts[0].size" is a string of 6 bytes: want a whole`},
		"two documents":     {`{"name": "secret"} {}`, "there is more than one value"},
		"cut":               {`{"name": "secret"`, "not valid JSON"},
		"nothing":           {"", "not valid JSON"},
	} {
		var d document
		err := strictjson.Decode([]byte(c.doc), &d)
		switch {
		case c.want == "" && (err != nil || d.Name != "secret" || d.Parts[0].Size != 1 || d.Extra["a"].Size != 2):
			t.Errorf("%s: got %+v, %v", name, d, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: the error shows a value: %v", name, err)
		}
	}
}

// TestOnlyAPublicDocumentIsShown: the error of a type that decodes itself may have the value.
func TestOnlyAPublicDocumentIsShown(t *testing.T) {
	var d struct {
		At time.Time `json:"at"`
	}
	doc := []byte(`{"at": "secret"}`)
	const want = `field "at" is a string of 6 bytes: want a valid time.Time`
	if err := strictjson.Decode(doc, &d); err == nil || err.Error() != want {
		t.Errorf("Decode: got %v, want %s", err, want)
	}
	err := strictjson.DecodePublic(doc, &d)
	if err == nil || !strings.HasPrefix(err.Error(), want+": ") || !strings.Contains(err.Error(), "secret") {
		t.Errorf("DecodePublic: got %v, want %s and what time.Time says", err, want)
	}
}

// TestHasFields finds fields as encoding/json does, and lets pass what has none of its own.
func TestHasFields(t *testing.T) {
	for _, c := range []struct {
		of    any
		names string
		want  bool
	}{
		{document{}, "name parts", true}, {&document{}, "name", true}, {document{}, "Name", false},
		{document{}, "name colour", false}, {map[string]int{}, "any", true}, {time.Time{}, "any", true},
	} {
		if got := strictjson.HasFields(reflect.TypeOf(c.of), strings.Fields(c.names)...); got != c.want {
			t.Errorf("%T has %s: got %v, want %v", c.of, c.names, got, c.want)
		}
	}
}

func TestDecodesIntoAPointerAlone(t *testing.T) {
	for _, into := range []any{nil, document{}, (*document)(nil)} {
		if err := strictjson.Decode([]byte(`{}`), into); err == nil {
			t.Errorf("decoding into %T: no error", into)
		}
	}
}
