// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// R-MA-29: each way to break what is lent is noticed.
func TestSlotMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "loans keep no cap", File: "protocol/borrow.go", Run: "TestSlotsAreLent|TestSlotsAreTaken",
			Old: "over != nil {\n\t\treturn l, over", New: "over == nil {\n\t\treturn l, over"},
		{Name: "a node is lent though it has a slot", File: "protocol/borrow.go", Run: "TestRolloutAndMachineShare",
			Old: "if s.UID == b.UID || s.Node == b.Node {", New: "if false {"},
		{Name: "a late return takes the next loan", File: "protocol/borrow.go", Run: "TestSlotsAreGivenBack",
			Old: "s.LoanID() != \"\" && s.LoanID() != id {", New: "s.LoanID() == \"x\" {"},
		{Name: "a slot stays the loan that it was", File: "protocol/borrow.go", Run: "TestSlotsAreGivenBack",
			Old: "if b.ID == \"\" || l.Loan", New: "if b.ID != \"\" || l.Loan"},
		{Name: "caps with keys are enough", File: "slots.go", Run: "TestSlotsWithKeys", Old: "return c.Key == \"\" }) {", New: "return c.Max > 0 }) {"},
		{Name: "the slots of the dead are kept", File: "slots.go", Run: "TestSlotsAreLent", Old: "\t\tif gone {", New: "\t\tif gone && false {"},
		{Name: "the slots of the living are freed", File: "slots.go", Run: "TestSlotsAreLent", Old: "\t\tif gone {", New: "\t\tif gone || true {"},
		{Name: "what machines break does not count", File: "plan.go", Run: "TestMachineFailure", Old: "\tp.loans()\n", New: ""},
		{Name: "a machine counts in each pass", File: "observe_loans.go", Run: "TestMachineFailure", Old: "return o.UID == holder })", New: "return false })"},
		{Name: "machines of other nodes count", File: "observe_loans.go", Run: "TestMachinesOfOthers", Old: "|| !p.concerns(s.UID) {", New: "{"},
		{Name: "a critical machine closes nothing", File: "protocol/borrow.go", Run: "TestCriticalMachine", Old: "\tif critical {", New: "\tif critical && false {"},
	})
}
