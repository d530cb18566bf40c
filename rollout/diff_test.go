// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/rollout"
)

// What two revisions of a history differ in is said field by field, and of opaque parts as a whole (R-RO-29).
func TestDiff(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		before, after map[string]string
		want          []string
	}{
		"nothing":         {map[string]string{"k": "a: 1"}, map[string]string{"k": "a: 1"}, nil},
		"nothing at all":  {nil, nil, nil},
		"a value":         {one("a: 1\nb: x"), one("a: 2\nb: x"), []string{"k: a: 1 -> 2"}},
		"its type":        {one("a: 1"), one(`a: "1"`), []string{`k: a: 1 -> "1"`}},
		"added, removed":  {one("a: {b: 1}"), one("a: {c: [2]}"), []string{"k: a.b: removed 1", "k: a.c: added [2]"}},
		"null is a value": {one("a: null\nb: 1"), one("b: 1"), []string{"k: a: removed null"}},
		"lists":           {one("a: [1, 2, 3]"), one("a: [1, 4]"), []string{"k: a[1]: 2 -> 4", "k: a[2]: removed 3"}},
		"a list itself":   {one("[1]"), one("[1, {a: 2}]"), []string{`k: [1]: added {"a":2}`}},
		"another shape":   {one("a: [1]"), one("a: {b: 1}"), []string{`k: a: [1] -> {"b":1}`}},
		"the whole shape": {one("[1]"), one("a: 1"), []string{`k: [1] -> {"a":1}`}},
		"odd names":       {one(`{"a.b": {"c d": 1}}`), one(`{"a.b": {"c d": 2}}`), []string{`k: ["a.b"]["c d"]: 1 -> 2`}},
		"large numbers":   {one("a: 9007199254740993"), one("a: 9007199254740992"), []string{"k: a: 9007199254740993 -> 9007199254740992"}},
		"style alone":     {one("a: 1"), one("a: 1 # one"), []string{"k: the same fields -> the same fields, written in another way"}},
		"a version":       {one("1.44.0"), one("1.45.0"), []string{`k: "1.44.0" -> "1.45.0"`}},
		"a long text": {one(long), one(long + "y"), []string{
			"k: 100 bytes, sha256:09ecb6ebc8bc… -> 101 bytes, sha256:a8724c855a5a…"}},
		"bytes":         {one("\xff"), one("\x00"), []string{"k: 1 bytes, sha256:a8100ae6aa19… -> 1 bytes, sha256:6e340b9cffb3…"}},
		"documents":     {one("a: 1"), one("a: 1\n---\nb: 2"), []string{`k: "a: 1" -> 13 bytes, sha256:9cfd0664246e…`}},
		"values":        {one("{\"a\":1}\n{\"b\":1}"), one("{\"a\":1}\n{\"b\":2}"), []string{"k: 15 bytes, sha256:14dca8ac6710… -> 15 bytes, sha256:45d6067c8b6d…"}},
		"a rest":        {one(`{"a":1} x`), one(`{"a":1} y`), []string{`k: "{\"a\":1} x" -> "{\"a\":1} y"`}},
		"a field twice": {one("a: 1"), one("{a: 1, a: 2}"), []string{`k: "a: 1" -> "{a: 1, a: 2}"`}},
		"parts":         {map[string]string{"k": "a: 1", "o": ""}, map[string]string{"k": "a: 1", "n": "a: 1"}, []string{`n: added "a: 1"`, `o: removed ""`}},
	} {
		var got []string
		for _, change := range rollout.Diff(c.before, c.after) {
			got = append(got, change.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

func one(text string) map[string]string { return map[string]string{"k": text} }

// Whatever the contents are, equal ones have no change and others have one, and the way back has the same paths (R-RO-29).
func FuzzDiff(f *testing.F) {
	for _, seed := range []string{"", "a: 1", "[1, {b: 2}]", "a: &x [1]\nb: *x", "---\na: 1", "\xff", "{a: 1, a: 2}", "a: 1e400"} {
		f.Add(seed, "a: 2")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		there, back := rollout.Diff(one(a), one(b)), rollout.Diff(one(b), one(a))
		if (len(there) == 0) != (a == b) || len(there) != len(back) {
			t.Fatalf("%q and %q: %d changes, and %d on the way back", a, b, len(there), len(back))
		}
		for i := range there {
			if there[i].Path != back[i].Path || there[i].Path == "" {
				t.Errorf("%q and %q: the paths are %q and %q", a, b, there[i].Path, back[i].Path)
			}
		}
	})
}

func ExampleDiff() {
	before := map[string]string{"kubelet": "maxPods: 110\nevictionHard: {memory.available: 100Mi}"}
	after := map[string]string{"kubelet": "maxPods: 200\nevictionHard: {memory.available: 100Mi}\nserializeImagePulls: false"}
	for _, change := range rollout.Diff(before, after) {
		fmt.Println(change)
	}
	// Output:
	// kubelet: maxPods: 110 -> 200
	// kubelet: serializeImagePulls: added false
}
