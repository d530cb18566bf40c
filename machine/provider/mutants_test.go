// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"slices"
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch tokens, abilities, configs, decorators and backoffs that are broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, slices.Concat(tokenMutants(), typedMutants(), rateMutants(), breakerMutants(), coalesceMutants()))
}

func tokenMutants() []mutate.Mutant {
	return []mutate.Mutant{
		{Name: "an empty list changes the digest", File: "provider.go", Run: "TestDigest",
			Old: "Roles []string `json:\"roles,omitempty\"`", New: "Roles []string `json:\"roles\"`"},
		{Name: "taints are no part of the digest", File: "provider.go", Run: "TestDigest",
			Old: "`json:\"taints,omitempty\"`", New: "`json:\"-\"`"},
		{Name: "all incarnations have one token", File: "token.go", Run: "TestToken$",
			Old: "short(uid, 16), incarnation)", New: "short(uid, 16), min(incarnation, 1))"},
		{Name: "a host is a token", File: "token.go", Run: "TestTokenOf",
			Old: "!found || slash < 0", New: "!found"},
		{Name: "a token may be long", File: "token.go", Run: "TestCheckToken",
			Old: "len(token) > maxToken {", New: "len(token) > 2*maxToken {"},
		{Name: "a token may end with a dash", File: "token.go", Run: "TestCheckToken",
			Old: "|| token[len(token)-1] == '-'", New: ""},
		{Name: "a token may be a path", File: "token.go", Run: "TestTokenOf",
			Old: "CheckToken(token) == nil", New: `token != ""`},
		{Name: "methods count for more than what is said", File: "able.go", Run: "TestAbilitiesOf",
			Old: "\t\treturn a.Abilities()\n", New: "\t\tif b := a.Abilities(); b != (Abilities{}) {\n\t\t\treturn b\n\t\t}\n"},
		{Name: "an ability is made up", File: "wrap.go", Run: "TestDecoratorsKeepAbilities",
			Old: "\tif inner.Console != nil {", New: "\tif inner.Power != nil {"},
		{Name: "an ability is lost", File: "wrap.go", Run: "TestDecoratorsKeepAbilities",
			Old: "\t\ta.Group = able\n", New: "\t\ta.Group = nil\n"},
		{Name: "an ability goes past the decorator", File: "wrap.go", Run: "TestObserve",
			Old: "\treturn w.around(ctx, resize, func(ctx context.Context) error { return w.inner.Group.Resize(ctx, name, size, d) })",
			New: "\treturn w.inner.Group.Resize(ctx, name, size, d)"},
		{Name: "a result is lost", File: "wrap.go", Run: "TestDecoratorsPassCalls",
			Old: "\t\tresult, err = call(ctx, arg)", New: "\t\t_, err = call(ctx, arg)"},
		{Name: "what can't be known is not there", File: "minimal.go", Run: "TestMinimal",
			Old: `Errorf(NotSupported, "get`, New: `Errorf(NotFound, "get`},
		{Name: "what can't be listed is an empty list", File: "minimal.go", Run: "TestMinimal",
			Old: "\treturn nil, Errorf(NotSupported, \"list instances of cluster %q: the provider can only create and delete\", s.Cluster)",
			New: "\t_ = s\n\treturn nil, nil"},
	}
}

func typedMutants() []mutate.Mutant {
	return []mutate.Mutant{
		{Name: "an ability does not decode", File: "typed.go", Run: "TestTypedRefuses",
			Old: "\t\treturn Progress{}, err\n", New: "\t\t_ = err\n"},
		{Name: "Validate asks no more than the type", File: "typed.go", Run: "TestTypedPasses",
			Old: "ok && err == nil {", New: "ok && err != nil {"},
		{Name: "the version does not matter", File: "decode.go", Run: "TestTypedRefuses",
			Old: `is(top, "apiVersion", d.kind.APIVersion); err != nil {`,
			New: `is(top, "apiVersion", d.kind.APIVersion); err != nil && len(top) < 2 {`},
		{Name: "a kind may be null", File: "decode.go", Run: "TestTypedRefuses",
			Old: `shape(raw) == "null" || json.Unmarshal(raw, &got) != nil {`, New: "json.Unmarshal(raw, &got) != nil {"},
		{Name: "bytes that are no text are replaced", File: "decode.go", Run: "TestTypedRefuses",
			Old: "!utf8.Valid(doc) {", New: "len(doc) < 0 {"},
		{Name: "a config is not defaulted", File: "decode.go", Run: "TestTypedPasses",
			Old: "\t\t\td.Default()\n", New: "\t\t\t_ = d\n"},
		{Name: "a config is not validated", File: "decode.go", Run: "TestTypedRefuses",
			Old: "err := v.Validate(); err != nil {", New: "err := v.Validate(); err != nil && len(err.Error()) == 0 {"},
		{Name: "the user is to blame for the type", File: "decode.go", Run: "TestTypedConfigTypes",
			Old: "return none, Errorf(Internal,", New: "return none, Errorf(InvalidConfig,"},
		{Name: "a field may stand twice", File: "walk.go", Run: "TestTypedRefuses",
			Old: "\t\tif seen[name] {", New: "\t\tif seen[name] && t == nil {"},
		{Name: "case does not matter", File: "walk.go", Run: "TestTypedRefuses",
			Old: "fields != nil && !known:", New: "fields != nil && !known && strings.ToLower(name) == name:"},
		{Name: "the path stays long", File: "walk.go", Run: "TestTypedRefuses",
			Old: "\t\t\treturn err\n\t\t}\n\t\tw.path = w.path[:len(w.path)-1]\n\t}\n\treturn w.end()\n}\n\nfunc (w *walk) list(",
			New: "\t\t\treturn err\n\t\t}\n\t}\n\treturn w.end()\n}\n\nfunc (w *walk) list("},
		{Name: "what decodes itself may hold what it wants", File: "walk.go", Run: "TestTypedRefuses",
			Old: "\treturn newWalk(raw, w.path).value(nil)\n", New: "\treturn nil\n"},
		{Name: "what is too much is dropped", File: "walk.go", Run: "TestTypedRefuses",
			Old: "i >= t.Len() {", New: "i > 9*t.Len() {"},
		{Name: "names of any length", File: "walk.go", Run: "TestTypedRefuses",
			Old: "const most = 200", New: "const most = 20000"},
		{Name: "fields of embedded structs are unknown", File: "shape.go", Run: "TestTypedPasses",
			Old: "\t\t\tcollect(inner, fields, visited)\n", New: ""},
		{Name: "what encoding/json leaves out is a field", File: "shape.go", Run: "TestTypedRefuses",
			Old: `if f.Tag.Get("json") == "-" {`, New: `if f.Tag.Get("json") == "-," {`},
		{Name: "the first of two fields of a name counts", File: "shape.go", Run: "TestTypedFieldsOfOneName",
			Old: "_, twice := fields[name]; twice ||", New: "_, twice := fields[name]; twice && f.Anonymous ||"},
	}
}
