// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync"
)

// secret stands in every refused document and must never come out in an error.
const secret = "c4n4ry"

func TestGateLetsPlainDocumentsThrough(t *testing.T) {
	for doc, want := range map[string]string{
		"a: 1\nb: [x, z]\n":              `{"a":1,"b":["x","z"]}`,
		`{"a": {"b": null}}`:             `{"a":{"b":null}}`,
		"a: yes\n":                       `{"a":true}`,
		"\"yes\": no\n":                  `{"yes":false}`,
		"# comment\n---\na: |\n  text\n": `{"a":"text\n"}`,
		"a: 1h\nb: 0x10\n":               `{"a":"1h","b":16}`,
	} {
		got, err := configsync.Gate([]byte(doc), configsync.GateLimits{})
		if err != nil || string(got) != want {
			t.Errorf("Gate(%q) = %s, %v; want %s", doc, got, err, want)
		}
	}
}

// Facts 7 and 8 of the threat model: growth by aliases, a second document, keys that differ in case.
func TestGateRefuses(t *testing.T) {
	for name, c := range map[string]struct{ doc, problem string }{
		"empty":              {" \n", "must not be empty"},
		"comment only":       {"# " + secret + "\n", "document"},
		"NUL":                {"a: \x00" + secret, "NUL"},
		"not UTF-8":          {"a: \xff" + secret, "UTF-8"},
		"broken":             {"a: [" + secret, "not valid YAML"},
		"anchor":             {"a: &x " + secret + "\n", "anchors"},
		"alias":              {"a: &x [" + secret + "]\nb: *x\n", "anchors"},
		"anchored key":       {"&x " + secret + ": 1\n", "anchors"},
		"merge key":          {"a: {}\n<<: {b: " + secret + "}\n", "merge"},
		"quoted merge key":   {"a: {\"<<\": {b: " + secret + "}}\n", ""},
		"tag":                {"a: !!binary " + secret + "\n", "tags"},
		"own tag":            {"a: !mine " + secret + "\n", "tags"},
		"second document":    {"a: 1\n---\nb: " + secret + "\n", "second document"},
		"duplicate key":      {"a: 1\na: " + secret + "\n", "twice"},
		"case variant key":   {"maxPods: 1\nMaxPods: " + secret + "\n", "case"},
		"deep duplicate":     {"x: [{a: {b: 1, b: " + secret + "}}]\n", "twice"},
		"number as key":      {"1: " + secret + "\n", "quotes"},
		"boolean as key":     {"on: " + secret + "\n", "quotes"},
		"map as key":         {"? {a: b}\n: " + secret + "\n", "strings"},
		"too deep flow":      {"a: " + strings.Repeat("[", 70) + secret + strings.Repeat("]", 70), "levels"},
		"far too deep flow":  {strings.Repeat("[", 100_000), "not valid YAML"},
		"far too deep maps":  {strings.Repeat("{a: ", 60_000), ""},
		"far too deep block": {strings.Repeat("- ", 100_000) + "x", ""},
		"too long":           {"a: " + strings.Repeat("x", 256<<10), "262147 bytes, at most 262144"},
		"1 MiB":              {"a: " + strings.Repeat("x", 1<<20-3), "1048576 bytes"},
		"too many nodes":     {"a: [" + strings.Repeat("1,", 110_000) + "]", "100000"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := configsync.Gate([]byte(c.doc), configsync.GateLimits{})
			if name == "quoted merge key" && err == nil && !strings.Contains(string(out), `"\u003c\u003c"`) {
				t.Errorf("a quoted merge key was merged: %s", out)
			}
			var gate *configsync.GateError
			if name != "quoted merge key" && !errors.As(err, &gate) {
				t.Fatalf("Gate = %.40s, %v; want a GateError", out, err)
			}
			if err != nil && (!strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), secret)) {
				t.Errorf("error %q, want one with %q and nothing of the document", err, c.problem)
			}
		})
	}
}

// Fact 7: a 115 kB document that aliases one scalar 5,000 times became 500 MB elsewhere. Here nothing is expanded, and no other
// document of a legal size makes the parser grow far beyond it either.
func TestGateIsBoundedInMemory(t *testing.T) {
	bomb := "a: &a " + strings.Repeat("x", 100_000) + "\nb:\n" + strings.Repeat("- *a", 1) + strings.Repeat("\n- *a", 4999) + "\n"
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [lol]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 8), i-1)
	}
	full := 256<<10 - 64
	docs := map[string]string{
		"one scalar, many aliases": bomb, "nested aliases": laughs.String(),
		"lists in lists": strings.Repeat("[", full), "maps in maps": strings.Repeat("{a: ", full/4),
		"block lists": strings.Repeat("- ", full/2), "explicit keys": strings.Repeat("? ", full/2),
		"short items": "[" + strings.Repeat("1,", full/2) + "]", "empty items": strings.Repeat("-\n", full/2),
		"comments": strings.Repeat("#\n", full/2), "comments in a map": "a:\n" + strings.Repeat(" # x\n b: 1\n", full/12),
		"anchors": strings.Repeat("- &a 1\n", full/7), "documents": strings.Repeat("---\n", full/4),
		"quotes": "a: \"" + strings.Repeat("\\n", full/2) + "\"", "colons": strings.Repeat(":", full), "indent": indented(full),
	}
	for name, doc := range docs {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := configsync.Gate([]byte(doc), configsync.GateLimits{})
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
				t.Errorf("%d bytes allocated for a document of %d bytes (%v), want at most 32 MiB", used, len(doc), err)
			} else {
				t.Logf("%d KiB document: %d KiB allocated, %v", len(doc)>>10, used>>10, err)
			}
		})
	}
}

func indented(full int) string {
	var b strings.Builder
	for i := 0; b.Len() < full; i++ {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
