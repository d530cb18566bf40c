// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// R-MA-23: each way to break a cluster is noticed.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "no quorum afterwards", File: "members.go", Run: "TestLeave", Old: "case well < quorum:", New: "case well < 0:"},
		{Name: "the last member goes", File: "members.go", Run: "TestLeave", Old: "case voters == 0:", New: "case voters < 0:"},
		{Name: "learners have a vote", File: "members.go", Run: "TestLeave", Old: "if i == going || m.Learner {", New: "if i == going || m.Learner && false {"},
		{Name: "a learner is held", File: "members.go", Run: "TestLeave", Old: "if members[going].Learner {", New: "if false {"},
		{Name: "workers are members", File: "members.go", Run: "TestList", Old: "return machine.Protected(m.Spec.Roles) && c.o.Runs(m, member)", New: "return c.o.Runs(m, member)"},
		{Name: "the first of two goes", File: "members.go", Run: "TestLeave", Old: "func(is Member) bool { return c.hosts(m, is) }) {\n\t\treturn false, fmt", New: "func(is Member) bool { return false }) {\n\t\treturn false, fmt"},
		{Name: "all are healthy", File: "members.go", Run: "TestLeave|TestList", Old: "answer.Health == \"true\"", New: "answer.Health != \"\""},
		{Name: "who is gone is an error", File: "members.go", Run: "TestAnswers", Old: "refusal.Code == notFound {", New: "refusal.Code == 99 {"},
		{Name: "a member of two machines", File: "members.go", Run: "TestList", Old: "if n > 1 {", New: "if n > 9 {"},
		{Name: "no members is none", File: "client.go", Run: "TestAnswers", Old: "if len(answer.Members) == 0 {", New: "if false {"},
	})
}
