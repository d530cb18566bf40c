// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeletpayload

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a codec that is broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "the config alone is validated", File: "codec.go", Run: "TestDecodeAround|TestTwoGoodFiles",
			Old: "if c.o.Around != nil {", New: "if false {"},
		{Name: "the node's own fields are looked for in the merged result", File: "codec.go", Run: "TestDecodeAround",
			Old: "shared(&cfg, &used, ", New: "shared(&used, &used, "},
		{Name: "health is looked for in the config alone", File: "codec.go", Run: "TestDecodeAround",
			Old: "shared(&cfg, &used, ", New: "shared(&cfg, &cfg, "},
		{Name: "parallel pulls are not looked at", File: "dropin.go", Run: "TestFilled",
			Old: "valueOr(c.MaxParallelImagePulls, 1) < 2", New: "true"},
		{Name: "an absent list is an empty one", File: "policies.go", Run: "TestEnforcement",
			Old: "if list == nil {", New: "if false {"},
		{Name: "the local config becomes a drop-in", File: "layered.go", Run: "TestText",
			Old: `case known && own.o.DropIn && o.UID == "":`, New: "case false:"},
		{Name: "a drop-in is the merged result", File: "layered.go", Run: "TestText",
			Old: "case !known || own.o.DropIn || own.o.Around == nil:", New: "case !known || own.o.Around == nil:"},
		{Name: "an overlay is judged and not rendered", File: "layered.go", Run: "TestText",
			Old: "case !known || own.o.DropIn || own.o.Around == nil:", New: "case true:"},
	})
}
