// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// Each way to break a draft is noticed.
func TestDraftMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "what was refused stays", File: "draft.go", Run: "TestDraftIsTheLedger",
			Old: "	if over := next.over(a, caps, absent); over != nil {\n", New: "	d.Ledger = next\n	if over := next.over(a, caps, absent); over != nil {\n"},
		{Name: "the ledger that it was made from is changed", File: "draft.go", Run: "TestDraftIsTheLedger", Old: "	if !d.own {\n", New: "	if !d.own && d.Epoch < 0 {\n"},
	})
}
