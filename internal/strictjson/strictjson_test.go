// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson_test

import (
	"strings"
	"testing"

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
		"another case":      {`{"Name": "secret"}`, `field "Name" is not known; the field is "name"`},
		"twice":             {`{"name": "secret", "name": "secret"}`, `field "name" stands twice`},
		"twice in a map":    {`{"extra": {"a": {}, "a": {}}}`, `field "extra.a" stands twice`},
		"wrong type":        {`{"parts": [{"size": "secret"}]}`, `field "parts.size" must be a int, is a string`},
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

func TestDecodesIntoAPointerAlone(t *testing.T) {
	for _, into := range []any{nil, document{}, (*document)(nil)} {
		if err := strictjson.Decode([]byte(`{}`), into); err == nil {
			t.Errorf("decoding into %T: no error", into)
		}
	}
}
