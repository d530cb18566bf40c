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
		{Name: "guard and main process are two starts", File: "unit.go", Run: "TestGuardAndAgent", Old: "lkg.Exit{Kind: lkg.ExitCounted,", New: "lkg.Exit{Kind: lkg.ExitPlanned,"},
		{Name: "every start is on record already", File: "../../lkg/tracker_start.go", Run: "TestGuardCounts|TestGuardAndAgent", Old: "if e.Kind == ExitCounted && s.isBegun() {", New: "if s.isBegun() {"},
		{Name: "killed for memory is clean", File: "end.go", Run: "TestEndsOfAUnit", Old: `"oom-kill", `, New: ""},
		{Name: "a stop on request that was killed is a crash", File: "end.go", Run: "TestEndsOfAUnit",
			Old: "if asked {", New: `if asked && e.Result == "success" {`},
		{Name: "words are passed on as they are", File: "end.go", Run: "TestEndsOfAUnit", Old: "return '?'", New: "return r"},
		{Name: "an end explains every start", File: "unit.go", Run: "TestEachEnd",
			Old: "errors.Join(err, u.Store.Delete(ctx, streamEnd))", New: "err"},
		{Name: "an old stop explains a new end", File: "unit.go", Run: "TestEachEnd",
			Old: "boot == u.Boot && invocation == u.Invocation", New: "boot == u.Boot"},
		{Name: "an end explains a start of another boot", File: "unit.go", Run: "TestEachEnd",
			Old: "if end.Boot != u.Boot {", New: "if false {"},
		{Name: "what can't be removed is used", File: "unit.go", Run: "TestTroubleWithNotes",
			Old: `return lkg.Exit{}, fmt.Errorf("consuming %q: %w", streamEnd, err)`, New: "return end.exit(end.Asked, end.Ran), err"},
		{Name: "guard and main process count twice", File: "guard.go", Run: "TestGuardAndAgent",
			Old: "noteErr = errors.Join(noteErr, u.counted(ctx))", New: ""},
		{Name: "the hand-over explains later starts", File: "unit.go", Run: "TestGuardCountsForADeadAgent",
			Old: "counted := start.Counted && u.own(start.Boot, start.Invocation)", New: "counted := start.Counted"},
		{Name: "what isn't on record is handed over", File: "guard.go", Run: "TestGuardHandsOver",
			Old: "!records.failed.Load()", New: "records != nil"},
		{Name: "trouble with the notes keeps the start down", File: "guard.go", Run: "TestGuardStartsOver",
			Old: "exit, noteErr := u.Last(ctx)", New: "exit, noteErr := u.Last(ctx)\n\tif noteErr != nil {\n\t\treturn false, noteErr\n\t}"},
	})
}
