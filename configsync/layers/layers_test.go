// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package layers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/layers"
)

func merge(t *testing.T, docs ...string) layers.Merged {
	t.Helper()
	m, err := layers.Merge(stack(docs)...)
	if err != nil {
		t.Fatalf("Merge(%q): %v", docs, err)
	}
	return m
}

// stack names layers by their place: 0 is the weakest.
func stack(docs []string) []layers.Layer {
	var all []layers.Layer
	for i, d := range docs {
		all = append(all, layers.Layer{Name: string(rune('0' + i)), Doc: []byte(d)})
	}
	return all
}

// said is the origins in one line.
func said(m layers.Merged) string {
	var all []string
	for _, o := range m.Origins {
		all = append(all, o.Path+"="+o.Layer)
	}
	return strings.Join(all, " ")
}

// C-13: maps merge, all else is replaced as a whole, null takes away and is no empty list. C-12: each field has one origin.
func TestMergeRules(t *testing.T) {
	for _, c := range []struct {
		docs      []string
		doc, from string
	}{
		{[]string{"", " \n"}, "{}", ""},
		{[]string{"a: 1", "b: 2"}, `{"a":1,"b":2}`, "a=0 b=1"},
		{[]string{"a: 1", "a: 2", "b: 3"}, `{"a":2,"b":3}`, "a=1 b=2"},
		{[]string{"a: {b: 1, c: 1}", "a: {c: 2, d: 2}"}, `{"a":{"b":1,"c":2,"d":2}}`, "a.b=0 a.c=1 a.d=1"},
		{[]string{"a: [1, 2, 3]", "a: [4]"}, `{"a":[4]}`, "a[0]=1"},
		{[]string{"a: [{b: 1}]", "a: [{c: 2}]"}, `{"a":[{"c":2}]}`, "a[0].c=1"},
		{[]string{"a: [1]", "a: []"}, `{"a":[]}`, "a=1"},
		{[]string{"a: [1]", "a: null"}, `{}`, ""},
		{[]string{"a: {b: 1, c: 1}", "a: {b: null}"}, `{"a":{"c":1}}`, "a.c=0"},
		{[]string{"a: {b: 1}", "a: {b: null}"}, `{"a":{}}`, "a=1"},
		{[]string{"", "b: 1", "a: {b: null, c: {d: null}}"}, `{"a":{"c":{}},"b":1}`, "a.c=2 b=1"},
		{[]string{"a: 1", "a: [{b: null, c: 1}, null]"}, `{"a":[{"c":1},null]}`, "a[0].c=1 a[1]=1"},
		{[]string{"a: null", "b: []"}, `{"a":null,"b":[]}`, "a=0 b=1"},
		{[]string{"a: {b: 1}", "a: null", "c: 1"}, `{"c":1}`, "c=2"},
		{[]string{"a: {b: 1}", "a: null", "a: {c: 1}"}, `{"a":{"c":1}}`, "a.c=2"},
		{[]string{"a: {b: 1}", "a: {}"}, `{"a":{"b":1}}`, "a.b=0"},
		{[]string{"x: 1", "a: {}"}, `{"a":{},"x":1}`, "a=1 x=0"},
		{[]string{"a: {b: 1}", "a: 2"}, `{"a":2}`, "a=1"},
		{[]string{"a: 2", "a: {b: 1}"}, `{"a":{"b":1}}`, "a.b=1"},
		{[]string{"a: 1.50", "b: 12345678901234567890"}, `{"a":1.5,"b":12345678901234567890}`, "a=0 b=1"},
		{[]string{"a: <&>", "b.c: 1"}, `{"a":"<&>","b.c":1}`, `a=0 ["b.c"]=1`},
		{[]string{"kind: K", "a: 1", "kind: K"}, `{"a":1,"kind":"K"}`, "a=1 kind=2"},
	} {
		m := merge(t, c.docs...)
		if string(m.Doc) != c.doc || said(m) != c.from || m.Whole != "" {
			t.Errorf("%q give %s from %s, whole %q; want %s from %s", c.docs, m.Doc, said(m), m.Whole, c.doc, c.from)
		}
	}
}

// C-13: a document that is used whole is never written anew.
func TestWholeDocumentStaysAsItIs(t *testing.T) {
	const doc = "# mine\nb:  0x10\na: []  # none\nc: null\n"
	m := merge(t, "", doc, "")
	if string(m.Doc) != doc || m.Whole != "1" || said(m) != "a=1 b=1 c=1" {
		t.Errorf("%q, whole %q, from %s", m.Doc, m.Whole, said(m))
	}
}

func TestMergeRefuses(t *testing.T) {
	for want, docs := range map[string][]string{
		"the layers together: line 1: a key stands twice":               {"secret: 1", "Secret: 1"},
		"layer \"1\": line 1: anchors":                                  {"a: 1", "a: &secret 1"},
		"layer \"0\": document must be a map":                           {"[secret]"},
		"layer \"2\": field \"kind\" must be that of layer \"0\"":       {"kind: secret1", "a: 1", "kind: secret2"},
		"layer \"1\": field \"apiVersion\" must be that of layer \"0\"": {"apiVersion: secret1", "apiVersion: [secret2]"},
		"layer \"0\": field \"kind\" must be a string":                  {"kind: [secret]", "kind: 1"},
	} {
		if _, err := layers.Merge(stack(docs)...); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", docs, err, want)
		}
	}
}

type config struct {
	Max  int      `json:"max"`
	Name string   `json:"name"`
	List []string `json:"list"`
}

// Validate implements configsync.Validator.
func (config) Validate(context.Context, config) error { return nil }

// C-39: what is decoded, and so validated, is the merged result; the local config takes the place of the init layer.
func TestCodecDecodesTheMergedResult(t *testing.T) {
	s := layers.Stack{
		Defaults: []byte("max: 1\nlist: [a]"), Init: []byte("name: init"), Node: []byte("name: node"), Flags: []byte("list: []"),
	}
	c := layers.Codec(s, configsync.YAML[config](configsync.YAMLOptions{}))
	shared := configsync.Object{UID: "u", Data: map[string]string{"k": "max: 5\nname: shared", configsync.KeyTrialDuration: "7m"}}
	got, limits, err := c.Decode("k", shared)
	if err != nil || got.Max != 5 || got.Name != "node" || got.List == nil || len(got.List) != 0 || limits.Trial.Minutes() != 7 {
		t.Errorf("shared: %+v, %+v, %v", got, limits, err)
	}
	if shared.Data["k"] != "max: 5\nname: shared" {
		t.Error("the object was changed")
	}
	s.Node = nil
	got, _, err = layers.Codec(s, configsync.YAML[config](configsync.YAMLOptions{})).Decode("k", configsync.Object{Data: map[string]string{"k": "max: 9"}})
	if err != nil || got.Max != 9 || got.Name != "" {
		t.Errorf("local: %+v, %v, want the local config in place of the init layer", got, err)
	}
	for entry, want := range map[string]string{"max: [secret]": "field \"max\"", "more: secret": "field \"more\" is not known", "a: &x secret": "layer \"shared\": line 1", "": "missing or empty"} {
		_, _, err := c.Decode("k", configsync.Object{UID: "u", Data: map[string]string{"k": entry}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("entry %q: %v, want %q", entry, err, want)
		}
	}
}
