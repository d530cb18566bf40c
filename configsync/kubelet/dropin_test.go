// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"strings"
	"testing"
)

// L-CS-39: what a kubelet decides before it looks at its drop-ins. That it does is shown by the kubelet itself, in
// package settings.
func TestFilled(t *testing.T) {
	const freq = `"nodeStatusReportFrequency":"5m0s"`
	for text, want := range map[string]string{
		head:                                  `{` + freq + `,"serializeImagePulls":true}`,
		head + "maxParallelImagePulls: 1\n":   `{` + freq + `,"serializeImagePulls":true}`,
		head + "maxParallelImagePulls: 2\n":   `{` + freq + `,"serializeImagePulls":false}`,
		head + "serializeImagePulls: false\n": `{` + freq + `}`,
		head + "serializeImagePulls: true\nnodeStatusReportFrequency: 1m\n": `{}`,
		head + "serializeImagePulls: true\nnodeStatusUpdateFrequency: 9s\n": `{"nodeStatusReportFrequency":"9s"}`,
		head + "enforceNodeAllocatable: []\n": `{"enforceNodeAllocatable":["pods"],` + freq +
			`,"serializeImagePulls":true}`,
		head + "enforceNodeAllocatable: [none]\n": `{` + freq + `,"serializeImagePulls":true}`,
		"maxPods: 3\n": "",
	} {
		if got := string(fillDefaults([]byte(text))); got != want {
			t.Errorf("Filled(%q) = %s, want %s", text, got, want)
		}
	}
}

// L-CS-38: a document of others is refused only if the kubelet would not read it, and no error repeats what is in one.
func TestLenient(t *testing.T) {
	for _, c := range []struct{ text, want, refused string }{
		{text: head + "maxPods: 3 # a comment\n", want: head + "maxPods: 3 # a comment\n"},
		{text: head + "newerField: {a: 1}\n", want: head + "newerField: {a: 1}\n"},
		{text: head + "a: &x b\nc: *x\n", want: `{"a":"b","apiVersion":"` + apiVersion + `","c":"b","kind":"` + kind + `"}`},
		{
			text: head + "maxPods: 1\nmaxPods: 2\n",
			want: `{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","maxPods":2}`,
		},
		{text: "", refused: "empty"},
		{text: "maxPods: 3\n", refused: `"apiVersion" must be`},
		{text: strings.Replace(head, "v1beta1", "v1", 1), refused: `"apiVersion" must be`},
		{text: head + "secret: {secret\n", refused: "not valid YAML"},
	} {
		got, _, err := Lenient([]byte(c.text))
		if c.refused == "" && (err != nil || string(got) != c.want) || c.refused != "" &&
			(err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("Lenient(%q) = %q, %v, want %q, refused with %q", c.text, got, err, c.want, c.refused)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("Lenient(%q) = %v, which repeats the document", c.text, err)
		}
	}
}

// L-CS-39: the local config of a node is read as the kubelet reads it.
func TestLocalConfigIsReadLeniently(t *testing.T) {
	for text, refused := range map[string]bool{
		head + "newerField: 1\nmaxPods: 5\n":            false,
		head + "maxPods: 4\nmaxPods: 5\n":               false,
		head + "MaxPods: 9\nmaxPods: 5\n":               false,
		head + "maxPods: &five 5\npodsPerCore: *five\n": false,
		head + "maxPods: many\n":                        true,
		"maxPods: 5\n":                                  true,
	} {
		c, _, err := Codec(defaults).Decode(Key, object("", text, nil))
		if (err != nil) != refused || err == nil && c.MaxPods != 5 {
			t.Errorf("Decode(%q) = %+v, %v, want maxPods 5, refused: %t", text, c, err, refused)
		}
	}
}
