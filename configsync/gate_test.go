// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
)

// secret stands in every refused document and must never come out in an error.
const secret = "c4n4ry"

func TestGateLetsPlainDocumentsThrough(t *testing.T) {
	for doc, want := range map[string]string{
		"a: 1\nb: [x, z]\n":               `{"a":1,"b":["x","z"]}`,
		`{"a": {"b": null}}`:              `{"a":{"b":null}}`,
		"a: yes\n":                        `{"a":true}`,
		"\"yes\": no\n":                   `{"yes":false}`,
		"# comment\n---\na: |\n  text\n":  `{"a":"text\n"}`,
		"a: 1h\nb: 0x10\n":                `{"a":"1h","b":16}`,
		"{\n\t\"a\": [1,\t2]\n}\n":        `{"a":[1,2]}`,
		"- a: 1\n  b: {}\n- []\n":         `[{"a":1,"b":{}},[]]`,
		"\ufeffa: ~\n...\n# end\n":        `{"a":null}`,
		"a: 2001-01-01\nb: 010\nc: 1e3\n": `{"a":"2001-01-01","b":8,"c":1000}`,
		"a: 18446744073709551615\n":       `{"a":18446744073709551615}`,
		"\"1\": a\n\"\": b\n\"~\": c\n":   `{"":"b","1":"a","~":"c"}`,
		"a: \"it's\"\nb: 'a: b, [c'\n":    `{"a":"it's","b":"a: b, [c"}`,
		"a: x & y * z % ! #\n":            `{"a":"x \u0026 y * z % !"}`,
	} {
		got, err := configsync.Gate([]byte(doc), configsync.GateLimits{})
		if err != nil || string(got) != want {
			t.Errorf("Gate(%q) = %s, %v; want %s", doc, got, err, want)
		}
	}
}

// refused is a document and what the error says of it.
type refused struct{ doc, problem string }

func refusedDocuments() map[string]refused {
	return map[string]refused{
		"empty":              {" \n", "must not be empty"},
		"comment only":       {"# " + secret + "\n", "nothing but comments"},
		"null":               {"null", "must be a map or a list"},
		"nothing":            {"---\n...\n", "must be a map or a list"},
		"a text":             {secret, "must be a map or a list"},
		"directive":          {"%YAML 1.1\n---\na: " + secret + "\n", "no line may begin with %"},
		"late directive":     {"a: " + secret + "\n...\r%TAG ! x\n---\n", "no line may begin with %"},
		"infinity":           {"a: -.INF # " + secret + "\n", "line 1: infinity"},
		"not a number":       {"b: " + secret + "\na: .nan\n", "line 2: infinity"},
		"NUL in a text":      {"a: \"" + secret + "\\0\"\n", "NUL"},
		"unknown alias":      {"a: *" + secret + "\n", "not valid YAML"},
		"Kelvin sign":        {"k: 1\n\u212a: " + secret + "\n", "case"},
		"long s":             {"maxPods: 1\nmaxPod\u017f: " + secret + "\n", "case"},
		"null as key":        {"~: " + secret + "\n", "quotes"},
		"empty key":          {"?\n: " + secret + "\n", "quotes"},
		"time as key":        {"2001-01-01: " + secret + "\n", "quotes"},
		"list as key":        {"[a]: " + secret + "\n", "strings"},
		"tag on a key":       {"!!str a: " + secret + "\n", "tags"},
		"verbatim tag":       {"a: !<tag:yaml.org,2002:str> " + secret + "\n", "tags"},
		"tab as indentation": {"a:\n\tb: " + secret + "\n", "line 2: is not valid YAML: a tab"},
		"colon in a value":   {"a: " + secret + ": c\n", "a colon where no key can be"},
		"indentation":        {"a: 1\n b: " + secret + "\n", "line 2: is not valid YAML: a colon"},
		"quotes do not end":  {"a: \"" + secret + "\n", "a text in quotes that does not end"},
		"key without colon":  {"a: 1\n" + secret + "\n", "a key without a colon"},
		"half a surrogate":   {`{"a": "` + secret + `\ud800"}`, "not valid YAML"},
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
	}
}

// Growth by aliases, a second document, keys that differ in case.
// S-CS-03.
func TestGateRefuses(t *testing.T) {
	for name, c := range refusedDocuments() {
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

// A 115 kB document that aliases one scalar 5,000 times became 500 MB elsewhere. Here nothing is expanded, and no other
// document of a legal size makes the parser grow far beyond it either.
// S-CS-03.
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
		"keys in a line": "{" + strings.Repeat("a,", full/2) + "}", "comments under keys": strings.Repeat("a:\n#\n", full/5),
		"comments in a list": strings.Repeat("- a #x\n#y\n\n#z\n", full/14), "directives": strings.Repeat("%TAG !a! b\n", full/11),
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

// The limits are exact: what is at a limit passes, what is beyond it doesn't.
// S-CS-02.
func TestGateLimitsAreExact(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, c := range map[string]struct {
		limits     configsync.GateLimits
		at, beyond string
	}{
		"bytes":        {configsync.GateLimits{Bytes: 5}, "a: bc", "a: bcd"},
		"depth":        {configsync.GateLimits{Depth: 3}, nested(3), nested(4)},
		"depth of map": {configsync.GateLimits{Depth: 3}, "a: {b: c}", "a: {b: [c]}"},
		"nodes":        {configsync.GateLimits{Nodes: 5}, "a: [1, 2]", "a: [1, 2, 3]"},
		"defaults":     {configsync.GateLimits{}, nested(64), nested(65)},
		"many nodes":   {configsync.GateLimits{}, "[" + strings.Repeat("1,", 99_998) + "1]", "[" + strings.Repeat("1,", 99_999) + "1]"},
		"many keys":    {configsync.GateLimits{Bytes: 1 << 20}, numbered(49_999), numbered(50_000)},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := configsync.Gate([]byte(c.at), c.limits); err != nil {
				t.Errorf("at the limit: %v", err)
			}
			var gate *configsync.GateError
			if _, err := configsync.Gate([]byte(c.beyond), c.limits); !errors.As(err, &gate) {
				t.Errorf("beyond the limit: %v, want a GateError", err)
			}
		})
	}
}

// numbered is a map of n keys in compact JSON: 2n+1 nodes.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",\"k%d\":1", i)
	}
	return "{" + b.String()[1:] + "}"
}

// Refusing the 115 kB bomb takes no longer than some harmless documents of its size.
// S-CS-03.
func TestGateRefusesTheBombAtOnce(t *testing.T) {
	bomb := []byte("a: &a " + strings.Repeat("x", 100_000) + "\nb:" + strings.Repeat("\n- *a", 5_000) + "\n")
	plain := []byte("a:" + strings.Repeat("\n- b", len(bomb)/4) + "\n")
	best := func(doc []byte, accepted bool) time.Duration {
		least := time.Hour
		for range 10 {
			began := time.Now()
			_, err := configsync.Gate(doc, configsync.GateLimits{})
			least = min(least, time.Since(began))
			if (err == nil) != accepted {
				t.Fatalf("Gate = %v, want accepted %t", err, accepted)
			}
		}
		return least
	}
	b, p := best(bomb, false), best(plain, true)
	t.Logf("bomb of %d bytes refused in %v; plain document of %d bytes let through in %v", len(bomb), b, len(plain), p)
	if b > 2*p {
		t.Errorf("the bomb took %v, more than twice the %v of a plain document of its size", b, p)
	}
}
