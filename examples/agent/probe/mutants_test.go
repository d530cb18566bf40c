// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a probe that is broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Kill(t, []mutate.Mutant{
		{Name: "any success passes", File: "http.go", Run: "TestOnlyStatus200",
			Old: "resp.StatusCode == http.StatusOK", New: "resp.StatusCode < 300"},
		{Name: "redirects are followed", File: "http.go", Run: "TestARedirect",
			Old: "return http.ErrUseLastResponse", New: "return nil"},
		{Name: "the context is not obeyed", File: "http.go", Run: "TestASlowAnswer",
			Old: "http.NewRequestWithContext(ctx, ", New: "http.NewRequestWithContext(context.WithoutCancel(ctx), "},
		{Name: "IPv6 addresses have no brackets", File: "http.go", Run: "TestTheAddressFollows",
			Old: "address = \"[\" + address + \"]\"", New: ""},
		{Name: "the own port is in the error", File: "http.go", Run: "TestTheSameTrouble",
			Old: "op.Source = nil", New: "_ = op"},
	})
}
