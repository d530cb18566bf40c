// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches each of these.
func TestMutants(t *testing.T) {
	mutate.Kill(t, []mutate.Mutant{
		{Name: "the next child starts beside the old one", File: "supervisor.go", Run: "TestRestartEndsOneChild",
			Old: "c.stop(s.o.Grace)\n\t\treturn true, done", New: "return true, done"},
		{Name: "a planned end is a crash", File: "supervisor.go", Run: "TestRestartEndsOneChild",
			Old: "c.stop(s.o.Grace)\n\t\treturn true, done", New: "c.stop(s.o.Grace)\n\t\treturn false, done"},
		{Name: "crashes are retried at once", File: "supervisor.go", Run: "TestBackoffGrows",
			Old: "wait = min(max(wait*2, s.o.BackoffMin), s.o.BackoffMax)", New: "wait = 0"},
		{Name: "the backoff never ends", File: "supervisor.go", Run: "TestBackoffIsBounded/bounded",
			Old: "wait = min(max(wait*2, s.o.BackoffMin), s.o.BackoffMax)", New: "wait = max(wait*200, s.o.BackoffMin)"},
		{Name: "a request waits for the backoff", File: "supervisor.go", Run: "TestRestartCutsTheBackoffShort",
			Old: "case a := <-s.asks:\n\t\tclose(a.done)\n\t}", New: "}"},
		{Name: "a bad baseline is retried", File: "supervisor.go", Run: "TestFatalPreparation",
			Old: "if errors.As(err, &baseline) || errors.Is(err, ErrFatal) {", New: "if errors.As(err, &baseline) && errors.Is(err, ErrFatal) {"},
		{Name: "the group is left alone", File: "child.go", Run: "TestLeftoversAreKilled",
			Old: "if exited {\n\t\tc.signal(syscall.SIGKILL)\n\t}", New: ""},
		{Name: "stubborn children are waited for", File: "child.go", Run: "TestStubbornChild",
			Old: "c.signal(syscall.SIGKILL)\n\t\t<-c.gone", New: "<-c.gone"},
		{Name: "children outlive a killed agent", File: "own_linux.go", Run: "TestKilledAgent",
			Old: "cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL", New: ""},
	})
}
