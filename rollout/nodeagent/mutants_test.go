// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches each of these.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "apply is repeated after a boot", File: "decide.go", Run: "TestPowerCutAnywhere",
			Old: "case rec.Boot != v.seen.BootID:", New: "case rec.Boot == \"\":"},
		{Name: "a reboot is judged before it comes", File: "decide.go", Run: "TestRebooting",
			Old: "case called && last.rebooting && now.Sub(last.at) < v.limits.applyTimeout:", New: "case called && last.at.IsZero():"},
		{Name: "what a broken node runs counts as well", File: "decide.go", Run: "TestNextAttemptOfBrokenNode",
			Old: "v.disk.Status.Report.Phase == protocol.PhaseFailedBroken {", New: "v.disk.Status.Report.Phase == \"\" {"},
		{Name: "no way back is tried", File: "decide.go", Run: "TestIrreversible",
			Old: "if rec.Revert && !v.seen.CanRevert &&", New: "if rec.Key == \"\" &&"},
		{Name: "a way back is taken back", File: "decide.go", Run: "TestTakenBack",
			Old: "|| rec.Revert || !v.seen.CanRevert", New: "|| !v.seen.CanRevert"},
		{Name: "nobody asked for the way back", File: "decide.go", Run: "TestTakenBack",
			Old: "if !v.limits.revertBroken || rec", New: "if rec"},
		{Name: "the disk is not asked", File: "decide.go", Run: "TestKilledAnywhere",
			Old: "if v.online && !begun {\n\t\tsh :=", New: "if v.online && !begun && !v.shadow.Status.Report.Known {\n\t\tsh :="},
		{Name: "what takes a boot begins in silence", File: "record.go", Run: "TestBeginning|TestReports",
			Old: "case DisruptionNone, DisruptionRestart, DisruptionDrain:", New: "case DisruptionNone, DisruptionRestart, DisruptionDrain, DisruptionReboot:"},
		{Name: "a way back begins in silence", File: "record.go", Run: "TestBeginning", Old: "return !r.Revert\n", New: "return true\n"},
		{Name: "without a record what begins in silence begins again", File: "decide.go", Run: "TestRecordLost", Old: "case rec.isQuick() && lost:", New: "case rec.Key == \"\" && lost:"},
		{Name: "a boot that nobody has foreseen is not told", File: "decide.go", Run: "TestUnforeseenBoot", Old: "&& !last.rebooting &&", New: "&&"},
		{Name: "what an agent before has begun is over", File: "decide.go", Run: "TestKilledAnywhere", Old: "err == nil && last.key == v.disk.Key &&", New: "err == nil &&"},
		{Name: "a broken node is back without a check", File: "decide.go", Run: "TestBound",
			Old: "case rec.target().Is(v.seen.Current) && v.passed():", New: "case rec.target().Is(v.seen.Current):"},
		{Name: "a rejection is not told", File: "../../configsync/steered.go", Run: "TestRejectedConfigs", Old: "return false, true, e.Reason, nil", New: "return false, false, e.Reason, nil"},
		{Name: "a server that is away fails the node", File: "config.go", Run: "TestServerAway", Old: "!ok || !t.Temporary()", New: "!ok || t.Temporary()"},
		{Name: "a server that is away is asked all the time", File: "config.go", Run: "TestServerAway", Old: "wait = min(2*wait, adoptSlowest*c.every())", New: "wait = c.every()"},
		{Name: "a rejection is no failure", File: "../detect.go", Run: "TestRejectedConfigs", Old: "case \"\", Succeeded, Refused,", New: "case \"\", Succeeded, FailedClean, Refused,"},
		{Name: "a revert is repeated after a boot", File: "decide.go", Run: "TestPowerCutAnywhere",
			Old: "case rec.Back == v.seen.BootID && !called:", New: "case !called:"},
	})
}

// The same for what is kept, and in which order.
func TestRecordMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "what has begun waits for the server", File: "agent.go", Run: "TestCutOff",
			Old: "l.unreachable = fmt.Errorf(", New: "return l, fmt.Errorf("},
		{Name: "a report is not on the disk", File: "agent.go", Run: "TestKilledAnywhere",
			Old: "if err := a.put(ctx, r); err != nil {\n\t\treturn err\n\t}\n\tif !l.online", New: "if !l.online"},
		{Name: "a lost record is not written again", File: "agent.go", Run: "TestRecordLost",
			Old: "if !l.online || r == l.known || r.Status.Report.Attempt == 0 {", New: "if l.version != \"\" {"},
		{Name: "a damaged record is an empty one", File: "agent.go", Run: "TestRecordUnreadable",
			Old: "return record{}, fmt.Errorf(\"nodeagent: %w\", err)", New: "return record{}, nil"},
		{Name: "conflicts end the pass", File: "agent.go", Run: "TestRevokedGrantIsNotCommitted",
			Old: "case errors.Is(err, ErrConflict): // somebody", New: "case errors.Is(err, ErrConflict):\n\t\t\tpanic(err) // somebody"},
		{Name: "numbers of another ledger stay", File: "record.go", Run: "TestRegisteredAnew",
			Old: "rep.Attempt = min(rep.Attempt, sh.Orders.Revoked)", New: "rep.Attempt = max(rep.Attempt, sh.Orders.Revoked)"},
		{Name: "the past of another incarnation stays", File: "record.go", Run: "TestRegisteredAnew",
			Old: "case rep.Phase.AtRest() || rep.Phase == protocol.PhaseCommitted:", New: "case rep.Phase == \"\":"},
		{Name: "without a record all begins again", File: "record.go", Run: "TestRecordLost",
			Old: "UID: sh.UID, Status: sh.Status, Key:", New: "UID: sh.UID, Status: sh.Status, Boot: sh.Status.BootID, Key:"},
		{Name: "without a record it goes forward", File: "record.go", Run: "TestRecordLost",
			Old: "Revert: sh.Orders.Revert && sh.Orders.Grant == k,", New: ""},
		{Name: "fields of a newer agent are dropped", File: "record.go", Run: "TestRecordUnreadable",
			Old: "d.DisallowUnknownFields() // a newer", New: "// a newer"},
		{Name: "any format is read", File: "record.go", Run: "TestRecordUnreadable",
			Old: "if r.Format != format {", New: "if r.Format < format {"},
		{Name: "a grant of another node is honoured", File: "do.go", Run: "TestOtherIncarnation",
			Old: "if uid == \"\" || uid != sh.UID {", New: "if uid == \"\" {"},
		{Name: "the attempt of another node is inherited", File: "agent.go", Run: "TestAttemptOfAnotherIncarnation",
			Old: "if l.inherits() {", New: "if l.inherits() && l.shadow.UID == \"\" {"},
		{Name: "the word to proceed is for anybody", File: "do.go", Run: "TestOtherIncarnation",
			Old: "case begin, quick:\n\t\tif err := a.own(ctx, l.shadow); err != nil {\n\t\t\treturn err\n\t\t}", New: "case begin, quick:"},
		{Name: "the intent to go back is not on the disk", File: "do.go", Run: "TestPowerCutAnywhere",
			Old: "if err := a.put(ctx, r); err != nil {\n\t\treturn err\n\t}\n\tback :=", New: "back :="},
	})
}

// The same for verification.
func TestVerifyMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "the end of the agent is a return", File: "do.go", Run: "TestEndIsNoReturn",
			Old: "if ctx.Err() != nil {\n\t\treturn ctx.Err()\n\t}\n\tdone := ran", New: "done := ran"},
		{Name: "a trial is kept in memory", File: "do.go", Run: "TestHealthyTimeOverRestarts",
			Old: "a.o.VerifyEvery+a.o.CheckTimeout)\n\treturn a.put(ctx, r)", New: "a.o.VerifyEvery+a.o.CheckTimeout)\n\treturn nil"},
		{Name: "no answer is an answer", File: "do.go", Run: "TestHealthyTimeIsInterrupted",
			Old: "now.verdict, now.why = NotYet, why{ReasonNoAnswer", New: "now.why = why{ReasonNoAnswer"},
		{Name: "time of nobody is healthy", File: "trial.go", Run: "TestCredit",
			Old: "if !last.of(now.key, now.boot) {", New: "if last.at.IsZero() {"},
		{Name: "a failed check takes nothing away", File: "trial.go", Run: "TestHealthyTimeIsInterrupted",
			Old: "t.Healthy = 0\n\tcase", New: "\n\tcase"},
		{Name: "one check that passed is enough", File: "trial.go", Run: "TestHealthyTimeIsInterrupted",
			Old: "case now.verdict == Pass && last.verdict == Pass:", New: "case now.verdict == Pass:"},
		{Name: "health outlives a boot", File: "trial.go", Run: "TestHealthyTimeOverRestarts",
			Old: "t.Boot, t.Healthy = now.boot, 0", New: "t.Boot = now.boot"},
		{Name: "any gap is believed", File: "trial.go", Run: "TestCredit",
			Old: "min(gap, most)", New: "gap"},
		{Name: "restarts are free", File: "trial.go", Run: "TestBound",
			Old: "t.Spent += every", New: "t.Spent += 0"},
		{Name: "changes are slept over", File: "run.go", Run: "TestRunEnds",
			Old: "\tcase <-a.o.Changed:\n", New: ""},
	})
}

// The same for hooks and configs.
func TestUpdaterMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "leftovers live on", File: "exec_call.go", Run: "TestHookLeavesNothing",
			Old: "g.kill()\n\t\t\tg.forget()", New: "g.forget()"},
		{Name: "the group outlives the deadline", File: "exec_call.go", Run: "TestHookIsKilledAtItsDeadline",
			Old: "syscall.Kill(-g.pid,", New: "syscall.Kill(g.pid,"},
		{Name: "there is no deadline", File: "exec_call.go", Run: "TestHookIsKilledAtItsDeadline",
			Old: "context.AfterFunc(ctx, g.kill)", New: "context.AfterFunc(ctx, func() {})"},
		{Name: "output has no bound", File: "exec_call.go", Run: "TestHookOutputIsBounded",
			Old: "room := min(len(p), maxOutput-b.kept.Len())", New: "room := len(p)"},
		{Name: "hooks get the agent's secrets", File: "exec.go", Run: "TestHookEnvironmentByDefault",
			Old: "e.Env = []string{\"PATH=\" + os.Getenv(\"PATH\")}", New: "e.Env = os.Environ()"},
		{Name: "a misspelt verdict passes", File: "exec.go", Run: "TestHookAnswers",
			Old: "\td.DisallowUnknownFields()\n", New: ""},
		{Name: "one of two answers is taken", File: "exec.go", Run: "TestHookAnswers",
			Old: "if _, err := d.Token(); !errors.Is(err, io.EOF) {", New: "if _, err := d.Token(); errors.Is(err, io.ErrNoProgress) {"},
		{Name: "a config that is not in use is well", File: "config.go", Run: "TestConfigNotInUse",
			Old: "case !used:", New: "case inUse == \"\":"},
		{Name: "what comes too late is taken up some time", File: "config.go", Run: "TestConfigThatComesTooLate",
			Old: "errors.Is(ctx.Err(), context.DeadlineExceeded)", New: "errors.Is(ctx.Err(), context.Canceled)"},
		{Name: "a bad config is waited for", File: "config.go", Run: "TestBadConfig",
			Old: "err == nil && bad {", New: "err != nil && bad {"},
	})
}
