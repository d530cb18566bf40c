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
			Old: "for k, v := range b {", New: "for k, v := range b {\n\t\tif v == nil {\n\t\t\tcontinue\n\t\t}"},
		{Name: "the weakest layer wins", File: "merge.go", Run: "TestMergeRules",
			Old: "return above\n", New: "return below\n"},
		{Name: "maps are replaced", File: "merge.go", Run: "TestMergeRules",
			Old: "v = over(old, v)", New: "_ = old"},
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
