// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belayproject/belay/configsync"
)

// FuzzSource shows that whatever an annotation holds is empty, correct or invalid, and that the error is short.
func FuzzSource(f *testing.F) {
	for _, s := range []string{
		``, `null`, `{}`, `[]`, `"x"`, `{"configMapRef":null}`, `{"configMapRef":{}}`, `{"configMapRef":[]}`, `{"ConfigMapRef":{}}`,
		`{"configMapRef":{"namespace":"a","name":"b","uid":"c"}}`, `{"configMapRef":{"namespace":1}}`,
		`{"configMapRef":{"namespace":"a","name":"b","uid":"c"},"x":{}}`, `{"a":1,"a":2}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		spec, err := specFrom(raw, "metadata.annotations", 0)
		var invalid *configsync.InvalidError
		if err != nil && (spec != nil || !errors.As(err, &invalid)) {
			t.Fatalf("%q gave %v, %v, want an *InvalidError alone", raw, spec, err)
		}
		if err != nil && len(err.Error()) > 16*maxQuoted {
			t.Fatalf("an input of %d bytes gave an error of %d", len(raw), len(err.Error()))
		}
		if spec != nil && (spec.Namespace == "" || spec.Name == "" || strings.Contains(spec.Name+spec.Namespace+spec.UID+spec.Key, "/")) {
			t.Fatalf("%q gave %+v, which may not be taken", raw, spec)
		}
	})
}

// TestLookalikeFieldIsNotTaken shows that names are compared with their case: "ConfigMapRef" is no field of a source.
func TestLookalikeFieldIsNotTaken(t *testing.T) {
	_, err := specFrom([]byte(`{"ConfigMapRef":{"namespace":"a","name":"b","uid":"c"}}`), "x", 0)
	var invalid *configsync.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != "x.ConfigMapRef" {
		t.Errorf("got %v, want it to name the field ConfigMapRef", err)
	}
}

// TestClip shows that what is cut stays valid text, within its bound, and says that it was cut.
func TestClip(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {"1234567", "1234567"}, {"12345678", "1234…"}, {"123ööö", "123…"}, {"\xffx", "\uFFFDx"},
	} {
		if got := clip(c.in, 7); got != c.want || len(got) > 7 || !utf8.ValidString(got) {
			t.Errorf("clip(%q, 7) = %q, want %q", c.in, got, c.want)
		}
	}
}
