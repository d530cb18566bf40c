// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a Syncer that is broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Kill(t, []mutate.Mutant{
		{Name: "the checkpoint is not stored", File: "pass.go", Run: "TestWriteOrderOfAdoption|TestNewConfig",
			Old: "if err := s.o.Store.Put(ctx, checkpointStream(ref.UID), obj.Raw); err != nil {\n\t\treturn fmt.Errorf(\"storing the checkpoint: %w\", err)",
			New: "if err := error(nil); err != nil {\n\t\treturn fmt.Errorf(\"storing the checkpoint: %w\", err)"},
		{Name: "no marker before a restart", File: "settle.go", Run: "TestWriteOrderOfAdoption",
			Old: "if err := s.tracker.PlanRestart(ctx, cause); err != nil {", New: "if err := error(nil); cause != \"\" && err != nil {"},
		{Name: "a start in between is restarted", File: "settle.go", Run: "TestStartBetweenTheDecisionAndTheRestart",
			Old: "if s.snapshot().epoch != epoch {", New: "if false {"},
		{Name: "configs are adopted unjudged", File: "pass.go", Run: "TestConfigThatFailsChecksIsNeverStarted",
			Old: "switch p.check.Outcome {\n\t\tcase lkg.CheckOK:", New: "switch p.check.Outcome {\n\t\tcase p.check.Outcome:"},
		{Name: "the good config has no copy of its own", File: "keep.go", Run: "TestGoodConfigOutlivesItsCheckpoint",
			Old: "return s.o.Store.Put(ctx, goodStream(r), obj.Raw)", New: "_ = obj\n\treturn nil"},
		{Name: "pruning takes the good config", File: "keep.go", Run: "TestGoodConfigOutlivesItsCheckpoint",
			Old: "for _, r := range []lkg.Ref{st.Current.Ref, st.LastKnownGood, st.Previous} {\n\t\tif r.IsLocal() {",
			New: "for _, r := range []lkg.Ref{st.Current.Ref} {\n\t\tif r.IsLocal() {"},
		{Name: "the next start doesn't know that the source is invalid", File: "settle.go", Run: "TestStartWithInvalidSource",
			Old: "s.tracker.SetDesired(ctx, outcome(spec, err))", New: "error(nil)"},
		{Name: "the UID is not compared", File: "pass.go", Run: "TestTroubleWithSource",
			Old: "if spec.UID != \"\" && spec.UID != obj.UID {", New: "if false {"},
		{Name: "mutable objects are taken", File: "pass.go", Run: "TestMutableObject",
			Old: "if spec.Policy == Pin && spec.Digest == \"\" && !obj.Immutable {", New: "if false {"},
		{Name: "trouble with the source moves a live process", File: "settle.go", Run: "TestTroubleNeverMovesALiveProcess",
			Old: "st.Desired = lkg.Outcome{Kind: lkg.DesiredCorrect}", New: ""},
		{Name: "the disk's trouble is not told", File: "syncer.go", Run: "TestUnrecordedStart|TestReadOnlyDisk",
			Old: "s.live.recorded, s.live.storage = recorded, storage", New: "s.live.recorded = recorded"},
		{Name: "an in-place edit of a followed object is not noticed", File: "pass.go", Run: "TestMutableObject",
			Old: "if spec.Policy == Follow || cur.IsLocal() ||", New: "if cur.IsLocal() ||"},
		{Name: "an edit is followed by all at once", File: "pass.go", Run: "TestEditIsFollowed",
			Old: "time.Duration(rand.Int64N(int64(jitter)))", New: "jitter/2"},
		{Name: "a lost restart is not repeated", File: "pass.go", Run: "TestLostRestart",
			Old: "again = s.recheck(again)", New: ""},
		{Name: "a rollback waits for its record", File: "settle.go", Run: "TestSickConfigIsLeftWithoutADisk",
			Old: "err != nil && c.Kind != RollBack {", New: "err != nil {"},
		{Name: "nobody notices that the disk has healed", File: "health.go", Run: "TestTrialGoesOnWhenTheDiskHeals",
			Old: "\t\ts.recoverStorage(ctx)\n", New: ""},
		{Name: "a dead watch is believed", File: "pass.go", Run: "TestDeadWatchIsMadeUpFor",
			Old: "return jittered(s.o.Resync)", New: "return 0"},
		{Name: "a dead child earns time", File: "syncer.go", Run: "TestDeadChildEarnsNothing",
			Old: "o.Probes = withChild(o.Probes, o.Restarter)", New: ""},
		{Name: "what is wanted is forgotten", File: "wanted.go", Run: "TestSteered", Old: "store.Get(ctx, streamWanted)", New: "store.Get(ctx, \"none\")"},
		{Name: "what is listed as bad is adopted", File: "steered.go", Run: "TestSteered", Old: "if next.Spec.means(e.Ref, s.o.Key) {", New: "if next.Spec == nil {"},
		{Name: "configs have the names of their objects", File: "wanted.go", Run: "TestSteered",
			Old: "if n.Spec.means(r, w.key) {\n\t\t\tname", New: "if n.Config == \"\" {\n\t\t\tname"},
		{Name: "what was assigned before is reset", File: "wanted.go", Run: "TestSteered", Old: "if !assigned.IsLocal() {", New: "if assigned.IsLocal() {"},
		{Name: "built-in defaults are not judged", File: "book.go", Run: "TestBadDefaults",
			Old: "s.validate(ctx, p.cfg); err != nil {\n\t\tp.check.Outcome", New: "error(nil); err != nil {\n\t\tp.check.Outcome"},
		{Name: "a panic of a codec ends the agent", File: "book.go", Run: "TestConfigThatFailsChecksIsNeverStarted",
			Old: "if r := recover(); r != nil {\n\t\t\tp = page[T]{check: lkg.Check{Outcome: lkg.CheckUndecodable", New: "if r := error(nil); r != nil {\n\t\t\tp = page[T]{check: lkg.Check{Outcome: lkg.CheckUndecodable"},
	})
}

// The suite catches a Syncer that reports too often, or not at all, in any of these ways.
func TestReportMutants(t *testing.T) {
	mutate.Kill(t, []mutate.Mutant{
		{Name: "a report that failed is not sent again", File: "report.go", Run: "TestReportsLandOnce",
			Old: "again = b.step()\n", New: "again = 0\n"},
		{Name: "every health report is a status write", File: "report.go", Run: "TestReportsLandOnce",
			Old: "t.Healthy = t.Healthy.Truncate(max(t.Needed/10, 1))", New: ""},
		{Name: "an adoption is reported before its start", File: "report.go", Run: "TestAdoptionIsOneReport",
			Old: "return reportHold - time.Since(asked)", New: "return 0 * reportHold"},
		{Name: "a restart that lasts is not reported", File: "report.go", Run: "TestLastingRestartIsReported",
			Old: "return reportHold - time.Since(asked)", New: "return reportHold"},
		{Name: "an adoption is reported with the trouble before it", File: "pass.go", Run: "TestAdoptionIsOneReport",
			Old: "s.noteOutcome(ctx, &spec, nil, nil)\n", New: "\n"},
		{Name: "what was reported is not compared again", File: "pass.go", Run: "TestReportsAreCompared",
			Old: "stirred || !inner", New: "stirred && inner"},
	})
}

// The suite catches a watch, or a wait for an acknowledgement, that is broken in any of these ways.
func TestWatchMutants(t *testing.T) {
	mutate.Kill(t, []mutate.Mutant{
		{Name: "wanted probes are required", File: "health.go", Run: "TestWantedProbes", Old: "Required: !wanted,", New: "Required: true,"},
		{Name: "nobody looks after a rollback", File: "watch.go", Run: "TestProbesAfterARollback",
			Old: "case v.Role != lkg.RoleCurrent && fails:", New: "case false:"},
		{Name: "alarms come at once", File: "watch.go", Run: "TestProbesAfterARollback", Old: `probe != "" && sick > deadline`, New: `probe != ""`},
		{Name: "alarms stay", File: "watch.go", Run: "TestProbesAfterARollback", Old: "s.live.sick = sickness{}", New: "_ = h"},
		{Name: "the watch never ends", File: "watch.go", Run: "TestWatchAfterPromotion", Old: "time.Since(now.proven) < s.o.WatchAfter", New: "time.Since(now.proven) >= 0"},
		{Name: "planned ends are crashes", File: "watch.go", Run: "TestWatchCountsCrashes",
			Old: "(s.Cause == lkg.CauseCrash || s.Cause == lkg.CauseUnknown)", New: `s.Cause != ""`},
		{Name: "time is credited before the word", File: "health.go", Run: "TestAcknowledgement", Old: "stale || waits && healthy(h)", New: "stale"},
		{Name: "who waits is not judged", File: "health.go", Run: "TestAcknowledgement", Old: "stale || waits && healthy(h)", New: "stale || waits"},
		{Name: "the word is waited for without end", File: "ack.go", Run: "TestAcknowledgement", Old: "case waited > deadline:", New: "case waited < 0:"},
		{Name: "each start waits anew", File: "ackwait.go", Run: "TestDeadlineOf", Old: "w.before, w.from = s.waitedBefore(ctx, assignment), now.up", New: "w.before, w.from = 0, now.up"},
		{Name: "short runs are no wait", File: "syncer.go", Run: "TestDeadlineOf", Old: "return s.endWait(ctx)", New: "return nil"},
		{Name: "a kill begins the wait anew", File: "ack.go", Run: "TestAKillDoesNot", Old: "if err := s.keepWait(ctx); ctx.Err() == nil {", New: "if err := error(nil); ctx.Err() == nil {"},
		{Name: "the wait of one config is held against the next", File: "ackwait.go", Run: "TestDeadlineOf", Old: "|| r.Assignment != assignment {", New: "{"},
		{Name: "what was acknowledged goes on waiting", File: "ackwait.go", Run: "TestAnAcknowledgementEnds", Old: "if !now.acked {", New: "if true {"},
		{Name: "who is not acknowledged stays where the disk is full", File: "ack.go", Run: "TestAnAcknowledgementEnds",
			Old: "return errors.Join(err, s.settle(ctx, true)) // to go back", New: "if err != nil {\n\t\treturn err\n\t}\n\treturn s.settle(ctx, true) // to go back"},
		{Name: "trouble is a word", File: "ack.go", Run: "TestTroubleIsNo", Old: "given && err == nil", New: "given || err != nil"},
	})
}
