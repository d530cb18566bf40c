// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/configsync"
)

// problems are all texts that a GateError may have, without their numbers: none has room for a part of the document.
var problems = regexp.MustCompile(`^(line N: |document )(` +
	`has N bytes, at most N are taken|must be UTF-N|must not hold NUL bytes|must not be empty|directives are not taken: .*|` +
	`has so many separators .*|is not valid YAML(: [a-z ,;]+)?|holds nothing but comments|must be a map or a list|` +
	`a second document begins here; there must be one|more than N keys and values|nested deeper than N levels|` +
	`anchors and aliases are not taken; .*|tags are not taken; .*|merge keys are not taken; .*|a text must not hold a NUL|` +
	`infinity and not-a-number are not taken; .*|the keys of a map must be strings|a key that reads as a .* must stand in quotes|` +
	`a key stands twice in its map, or .*|is YAML that Kubernetes reads differently; .*)$`)

var numbers = regexp.MustCompile(`[0-9,]*[0-9]`)

// What passes is read by a lenient reader in the same way; what doesn't is refused without a word of it.
func FuzzGate(f *testing.F) {
	for _, doc := range []string{
		"a: 1\n", `{"a": [1, {"b": null}]}`, "a: &x [1]\nb: *x\n", "a: 1\n---\nb: 2\n", "? a\n: b\n", "<<: {a: b}\n", "a: !!binary aGk=\n",
		"a: |\n  x\n   y\n", "a: >-\n  x\n", "'a': \"\\x41\"\n", "- - a\n  - b: c\n", "#x\na: b #y\n", "%TAG ! x\n---\na: b\n", "on: 1\n", "a: 0o7\n",
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		out, err := configsync.Gate(doc, configsync.GateLimits{})
		if err != nil {
			var gate *configsync.GateError
			if !errors.As(err, &gate) || !problems.MatchString(numbers.ReplaceAllString(err.Error(), "N")) {
				t.Fatalf("error %q is none of the known texts", err)
			}
			return
		}
		lenient, err := yaml.YAMLToJSON(doc)
		if err != nil || !bytes.Equal(lenient, out) || !json.Valid(out) {
			t.Fatalf("the gate gives %s, a lenient reader %s, %v", out, lenient, err)
		}
	})
}
