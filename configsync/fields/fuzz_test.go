// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fields_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync/fields"
)

// A policy that is taken decides without a panic and never lets a document be forbidden to itself; one that is not is refused with a path, not with
// its text.
func FuzzParse(f *testing.F) {
	for _, doc := range []string{
		"apiVersion: belay.dev/v1alpha1\nkind: FieldPolicy\ndefault: Live\nrules:\n- {path: 'a[*][\"b.c\"].*', action: Drain, pools: [x], why: y}\n",
		"{\"apiVersion\":\"belay.dev/v1alpha1\",\"kind\":\"FieldPolicy\",\"default\":\"Forbid\",\"rules\":[{\"path\":\"*.*\",\"action\":\"Live\"}]}",
	} {
		f.Add([]byte(doc), []byte("a: [{b.c: {d: 1}}]"))
	}
	f.Fuzz(func(t *testing.T, doc, config []byte) {
		p, err := fields.Parse(doc)
		if err != nil {
			return
		}
		d, err := p.Decide(config, config, "x")
		if err == nil && (len(d.Changes) > 0 || d.Err() != nil) {
			t.Fatalf("a config differs from itself: %+v", d)
		}
		d, err = p.Decide(nil, config, "")
		if err == nil && (d.Err() != nil) != (d.Action == fields.Forbid) {
			t.Fatalf("action %q with error %v", d.Action, d.Err())
		}
	})
}

// The way back changes the same fields, and a changed field is told by its path alone.
func FuzzDecide(f *testing.F) {
	for _, s := range [][2]string{{"a: [1, {b: x}]", "a: {b: x}"}, {"a: {}", "a: null"}, {"", "{\"a.b\": {\"\\\"\": []}}"}, {"[1]", "[[1]]"}} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	p, err := fields.New(fields.Forbid, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, from, to []byte) {
		there, err1 := p.Decide(from, to, "")
		back, err2 := p.Decide(to, from, "")
		if (err1 == nil) != (err2 == nil) {
			t.Fatalf("one way gives %v, the other one %v", err1, err2)
		}
		if err1 != nil {
			return
		}
		seen := map[string]bool{}
		for _, c := range there.Changes {
			seen[c.Path] = true
		}
		for _, c := range back.Changes {
			if !seen[c.Path] {
				t.Fatalf("field %s differs on the way back alone", c.Path)
			}
		}
		var refused *fields.RefusedError
		if err := there.Err(); err != nil && (!errors.As(err, &refused) || len(refused.Changes) != len(there.Changes) || strings.Contains(err.Error(), "\n")) {
			t.Fatalf("error %v for %d changes", err, len(there.Changes))
		}
	})
}
