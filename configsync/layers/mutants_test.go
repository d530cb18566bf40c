// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package layers_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches each of these.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "null is left out", File: "merge.go", Run: "TestMergeRules",
			Old: "delete(out, k)", New: "_ = k"},
		{Name: "null is kept where nothing is below", File: "merge.go", Run: "TestMergeRules",
			Old: "out[k] = over(inner, x)", New: "out[k] = x\n\t\t\tif inner != nil {\n\t\t\t\tout[k] = over(inner, x)\n\t\t\t}"},
		{Name: "null is kept in lists", File: "merge.go", Run: "TestMergeRules",
			Old: "out[k] = withoutNulls(v)", New: "out[k] = v"},
		{Name: "the weakest layer wins", File: "merge.go", Run: "TestMergeRules",
			Old: "result = over(result, v)", New: "result = over(v, result)"},
		{Name: "maps are replaced", File: "merge.go", Run: "TestMergeRules",
			Old: "out[k] = over(inner, x)", New: "_ = inner\n\t\t\tout[k] = over(nil, x)"},
		{Name: "the first layer is the origin", File: "merge.go", Run: "TestMergeRules",
			Old: "range slices.Backward(values) {", New: "range values {"},
		{Name: "a single document is written anew", File: "merge.go", Run: "TestWholeDocument",
			Old: "case 1:\n", New: "case -1:\n"},
		{Name: "kinds may differ", File: "merge.go", Run: "TestMergeRefuses",
			Old: "case said != values[first][field]:", New: "case false:"},
		{Name: "the layers are not decoded together", File: "codec.go", Run: "TestCodec",
			Old: "o.Data[key] = string(m.Doc)", New: "_ = m.Doc"},
		{Name: "the object is changed", File: "codec.go", Run: "TestCodec",
			Old: "o.Data = maps.Clone(o.Data)", New: "_ = maps.Clone(o.Data)"},
	})
}
