// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suites of the parsers catch each of these.
func TestMutantsOfTheParsers(t *testing.T) {
	mutate.Kill(t, []mutate.Mutant{
		{Name: "anchors pass", File: "gate.go", Run: "TestGateRefuses$",
			Old: "case n.Anchor != \"\" || n.Kind == yamlv3.AliasNode:", New: "case false:"},
		{Name: "a second document is dropped", File: "gate.go", Run: "TestGateRefuses$",
			Old: "switch err := dec.Decode(&second); {", New: "switch err := io.EOF; {"},
		{Name: "folding knows ASCII only", File: "gate.go", Run: "TestGateRefuses$",
			Old: "folded := fold(key.Value)", New: "folded := strings.ToLower(key.Value)"},
		{Name: "directives pass", File: "gate.go", Run: "TestGateRefuses$",
			Old: "case doc[0] == '%' || bytes.Contains(doc, []byte(\"\\n%\")) || bytes.Contains(doc, []byte(\"\\r%\")):", New: "case false:"},
		{Name: "documents of tiny nodes are parsed", File: "gate.go", Run: "TestGateIsBoundedInMemory",
			Old: "case separators(doc) > 2*l.Nodes:", New: "case false:"},
		{Name: "the depth is one too many", File: "gate.go", Run: "TestGateLimitsAreExact",
			Old: "case depth > w.limits.Depth:", New: "case depth > w.limits.Depth+1:"},
		{Name: "the parser's text is told", File: "gate.go", Run: "TestGateRefuses$",
			Old: "problem := \"is not valid YAML\"", New: "problem := text"},
		{Name: "a null is a document", File: "gate.go", Run: "TestYAMLOfUntypedPayload",
			Old: "if top.Kind == yamlv3.ScalarNode {", New: "if false {"},
		{Name: "unknown fields pass the walk", File: "strict.go", Run: "TestDecodeStrictRefuses",
			Old: "member, ok := fields[name]\n\t\tif !ok {", New: "member, ok := fields[name]\n\t\tif !ok && false {"},
		{Name: "repeated fields pass", File: "strict.go", Run: "TestDecodeStrictRefuses",
			Old: "if seen[name] {", New: "if false {"},
		{Name: "a tag is no better than a name", File: "fields.go", Run: "TestDecodeStrictKnowsTheFieldsThatCount",
			Old: "case len(tagged) == 1:", New: "case false:"},
		{Name: "the value of a wrong type is told", File: "strict.go", Run: "TestDecodeStrictRefuses",
			Old: "typeErr.Field, typeErr.Type, firstWord(typeErr.Value))", New: "typeErr.Field, typeErr.Type, typeErr.Value)"},
		{Name: "case variants of known fields are ignored", File: "object.go", Run: "TestParseObjectRefuses",
			Old: "case strings.EqualFold(name, want):", New: "case false:"},
		{Name: "keys of data may be paths", File: "object.go", Run: "TestParseObjectRefuses",
			Old: "if !isKey(key) {", New: "if false {"},
		{Name: "the last of two entries counts", File: "object.go", Run: "TestParseObjectRefuses",
			Old: "if _, ok := data[key]; ok {", New: "if false {"},
		{Name: "a kind is told as it is", File: "object.go", Run: "FuzzErrorsAreOneLine",
			Old: "\"kind is %q, must be %q\"", New: "\"kind is %s, must be %q\""},
		{Name: "keys are told as they are", File: "object.go", Run: "FuzzErrorsAreOneLine",
			Old: "\"field %q: key %s\", \"data\", keyNameProblem(key))", New: "\"field %q: key %s\", \"data\", key)"},
		{Name: "UIDs may be paths", File: "valid.go", Run: "FuzzHostileObject", Old: "if len(uid) > 100 || !isPlain(uid) || strings.Contains(uid, \"..\") {", New: "if uid == \"\" || strings.Contains(uid, \"\\x00\") {"},
		{Name: "keys and values are not framed", File: "object.go", Run: "TestDigest",
			Old: "b = strconv.AppendInt(b[:0], int64(len(key)), 10)", New: "b = b[:0]"},
	})
}
