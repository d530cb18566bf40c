// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a controller that is broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a cordon is not followed by a look", File: "act.go", Run: "TestFrozenBefore",
			Old: "	return p.remains(n, slot, d)\n", New: "	return true\n"},
		{Name: "who was given back is cordoned", File: "act.go", Run: "TestThawed|TestLateShadows", Old: "over = !sure && !held", New: "over = sure && !held"},
		{Name: "who was given back is cordoned without a look", File: "act.go", Run: "TestLateShadows", Old: "if !p.remains(n, slot, d) {", New: "if false {"},
		{Name: "the mark does not say that the node was cordoned", File: "marks.go", Run: "TestMarkIsOvertaken", Old: "	want.Closed = true\n", New: ""},
		{Name: "no attempt is left on the Node", File: "marks.go", Run: "TestThawed", Old: "	if m.Attempt > 0 {\n", New: "	if false {\n"},
		{Name: "who seems to be over is never cordoned", File: "act.go", Run: "TestAttemptsAreCounted", Old: "drains, true)", New: "drains, false)"},
		{Name: "every cordon begins a drain", File: "act.go", Run: "TestDrainBegins", Old: "int64(s.Attempt), drains)", New: "int64(s.Attempt), drains || true)"},
		{Name: "no cordon begins a drain", File: "act.go", Run: "TestDrainBegins", Old: "int64(s.Attempt), drains)", New: "int64(s.Attempt), drains && false)"},
		{Name: "the caps of others are not asked for", File: "round.go", Run: "TestRolloutsShare",
			Old: "all = append(all, p.decided[j].Caps...)", New: "all = append(all, p.decided[j].Caps[:0]...)"},
		{Name: "loans are taken from their holders", File: "round.go", Run: "TestLentSlots", Old: "Borrower(); lent {", New: "Borrower(); lent && false {"},
		{Name: "the caps of others do not bind", File: "round.go", Run: "TestLentSlots", Old: "all := slices.Clone(p.c.o.Caps)", New: "all := p.c.o.Caps[:0]"},
		{Name: "a refused rollout has no caps", File: "round.go", Run: "TestRefused", Old: "protocol.Cap{Max: 1,", New: "protocol.Cap{Max: 1000,"},
		{Name: "the cache is believed that a Node is gone", File: "round.go", Run: "TestCacheIsNotBelieved",
			Old: "gone, err = p.c.o.Fleet.Gone(ctx, n.Node, n.UID); return err", New: "gone = true; return err"},
		{Name: "a rollout goes before its slots", File: "tend.go", Run: "TestDeletedRollout",
			Old: "!r.Deleting || none || hasSlot(p.ledger, r.Policy.UID)", New: "!r.Deleting || none"},
		{Name: "closures outlive their rollout", File: "round.go", Run: "TestDeletedRollout",
			Old: "if !r.Deleting || hasSlot(l, r.Policy.UID) {", New: "if true {"},
		{Name: "orphans keep their slots", File: "round.go", Run: "TestDeletedRollout", Old: "		if gone {\n			was :=", New: "		if false {\n			was :="},
		{Name: "a policy that can't be followed keeps its slots", File: "round.go", Run: "TestDeletedRollout", Old: "r.Deleting && r.Invalid != nil", New: "false"},
		{Name: "marks of other domains are removed", File: "tend.go", Run: "TestMarksOfOtherDomains", Old: "n.mark.there && !p.foreign(n.mark.Rollout)", New: "n.mark.there"},
		{Name: "what was revoked keeps its cordon", File: "act.go", Run: "TestStrayCordon", Old: "max(sh.Report.Attempt, sh.Orders.Revoked)", New: "sh.Report.Attempt"},
		{Name: "a shadow that is deleted stays", File: "tend.go", Run: "TestDeletedShadow", Old: "n.selected && !p.deletes(n)", New: "n.selected"},
		{Name: "a new shadow does not revoke", File: "tend.go", Run: "TestShadowDeleted",
			Old: "protocol.NewShadow(n.Name, n.UID, l)", New: "protocol.NewShadow(n.Name, n.UID, protocol.Ledger{Epoch: l.Epoch * 0})"},
		{Name: "a lost ledger is an empty one", File: "gather.go", Run: "TestLedgerDeleted", Old: "if len(shadows) > 0 {", New: "if len(shadows) < 0 {"},
		{Name: "the switch is not asked again", File: "round.go", Run: "TestSwitchIsAsked", Old: "next.Epoch > p.ledger.Epoch && off() != \"\"", New: "false"},
		{Name: "the switch is not asked", File: "gather.go", Run: "TestSwitch", Old: "p.off = o.Off()", New: "_ = o.Off()"},
		{Name: "marks of others are removed", File: "marks.go", Run: "TestScaleDown", Old: "	if m.ScaleDown && annotations", New: "	if annotations"},
		{Name: "cordons of others are ours", File: "gather.go", Run: "TestForeignCordon", Old: "n.Unschedulable && !n.held", New: "false"},
		{Name: "no baseline", File: "marks.go", Run: "TestWorkThat", Old: "if h := p.c.o.Health; h != nil {", New: "if h := p.c.o.Health; h == nil {"},
		{Name: "marks stay", File: "tend.go", Run: "TestFleetGoes", Old: "			p.unmark(n)\n		}\n", New: "		}\n"},
		{Name: "a slot is freed before its node is given back", File: "act.go", Run: "TestSlotIsFreed",
			Old: "comes next\n			p.snapshot[p.byUID[n.UID]].Shadow = &earlier\n", New: "comes next\n			_ = earlier\n"},
		{Name: "a conflict of the ledger is not heeded", File: "round.go", Run: "TestOvertaken",
			Old: "rollout.ErrConflict):\n		return errAgain\n	case err != nil:\n		return fmt.Errorf(\"controller: storing the ledger",
			New: "rollout.ErrConflict):\n	case err != nil:\n		return fmt.Errorf(\"controller: storing the ledger"},
		{Name: "stray cordons stay", File: "tend.go", Run: "TestStrayCordon", Old: "		p.open(n)\n", New: ""},
		{Name: "shadows of unselected nodes stay", File: "tend.go", Run: "TestLabelRemoved|TestChurn", Old: "		p.dismiss()\n", New: ""},
		{Name: "non-intrusive revisions cordon when they leave", File: "../steer.go", Run: "TestNonIntrusive", Old: "aims := f.ordered(), p.targets\n", New: "aims := f.ordered(), p.targets[:0]\n"},
		{Name: "who aborts waits for the pass", File: "round.go", Run: "TestAbortDoesNot", Old: "p.c.wanted() != p.asked {", New: "p.c.wanted() == \"\" {"},
		{Name: "an empty node waits for the next pass", File: "act.go", Run: "TestEmptyNode", Old: "	return moved\n}\n\n// ordersOf", New: "	return due && moved\n}\n\n// ordersOf"},
		{Name: "a slot is freed of which nothing is stored", File: "round.go", Run: "TestOutcomeOutlives", Old: "if all, err := p.foretell(next); err", New: "if all, err := true, error(nil); err"},
		{Name: "how far a node was is not stored before it is lost", File: "ahead.go", Run: "TestLossOutlives",
			Old: "was.Attempt != s.Attempt || p.find(s.UID) == nil && was.State != is.State", New: "was.Attempt != s.Attempt"},
		{Name: "failures wait to be stored", File: "ahead.go", Run: "TestOutcomeOutlives",
			Old: "	return p.c.equal.DeepEqual(is, was)\n", New: "	return p.c.equal.DeepEqual(was, was)\n"},
		{Name: "all progress is stored at once", File: "round.go", Run: "TestProgressIs", Old: "		if p.mayWait(i) {", New: "		if false {"},
		{Name: "what is only shown is written every second", File: "controller.go", Run: "TestShownAtLeisure",
			Old: "defaultShow = 10 * time.Second", New: "defaultShow = time.Second"},
		{Name: "slots are left alone for long", File: "gather.go", Run: "TestSlotsKeep", Old: "	if len(p.ledger.Slots) > 0 {\n", New: "	if false {\n"},
		{Name: "an edge is counted at each pass", File: "edges.go", Run: "TestMetrics", Old: "f != nil && from != to {", New: "f != nil {"},
		{Name: "names without end", File: "edges.go", Run: "TestMetrics", Old: "if len(known) >= MaxRevisions {", New: "if false {"},
		{Name: "Run passes without end", File: "run.go", Run: "TestRunWorks", Old: "	if d > 0 {", New: "	if d == 0 {\n		d = time.Minute\n	}\n	if d > 0 {"},
	})
}

// The same for rollouts that can't be followed, that select the nodes of others, or that are gone.
func TestStandingMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "who is deleted hears nothing any more", File: "round.go", Run: "TestDeletedRolloutWaits",
			Old: "policy.Stages, policy.Prefetch = nil, nil", New: "policy.Stages, policy.Prefetch, policy.Verb = nil, nil, rollout.Verb{}"},
		{Name: "what can't be followed can't be stopped", File: "stop.go", Run: "TestAbortOfAnInvalidRollout", Old: "!asked && r.Progress.Stopped == \"\" {", New: "asked || r.Progress.Stopped == \"\" {"},
		{Name: "what is stopped begins anew", File: "stop.go", Run: "TestAbortOfAnInvalidRollout", Old: "range r.Progress.Targets {", New: "range r.Progress.Targets[:0] {"},
		{Name: "a pause gives back what drains", File: "stop.go", Run: "TestPauseOfAnInvalidRollout",
			Old: "if n.Do == protocol.EventUndo && d.Phase == rollout.Paused {", New: "if false {"},
		{Name: "what ends while it is stopped counts for nothing", File: "stop.go", Run: "TestEndsDuring", Old: "policy.Unfollowed = []rollout.Detector{}, true", New: "policy.Unfollowed = []rollout.Detector{}, false"},
		{Name: "a pause makes it valid", File: "stop.go", Run: "TestPauseOfARefused", Old: "is.Targets, is.Members, is.Stages, is.Promoted = was.Targets, ", New: "is.Members, is.Stages, is.Promoted = "},
		{Name: "a pause is lost", File: "../begin.go", Run: "TestPauseOfARefusedRollout", Old: "old.Targets == nil && next.Stopped == \"\"", New: "old.Targets == nil"},
		{Name: "what can't go on is emptied", File: "stop.go", Run: "TestPauseOfAnInvalidRollout", Old: "n.Do, n.Cordon = \"\", false", New: "n.Do = \"\""},
		{Name: "who falls back is not told", File: "edges.go", Run: "TestRelapseIsTold", Old: "&& !fellBack(was, is) {", New: "{"},
		{Name: "a stop cordons what is not intrusive", File: "stop.go", Run: "TestAbortOfAnInvalidNonIntrusiveRollout",
			Old: "n.Cordon && slot != nil && !slices.Contains(slot.Keys, intrusive)", New: "n.Cordon && slot != nil && slices.Contains(slot.Keys, \"-\")"},
		{Name: "whatever is asked for stops", File: "stop.go", Run: "TestInvalidRolloutStays", Old: "v.Request != \"\" && (v.Do == rollout.Pause || v.Do == rollout.Abort)", New: "v.Request != \"\""},
		{Name: "nodes belong to nobody", File: "overlap.go", Run: "TestNodeBelongs", Old: "owner < 0 || owner == i {", New: "owner < len(p.rollouts) {"},
		{Name: "the first is the one with the first name", File: "../owners.go", Run: "TestFirstRollout", Old: "cmp.Or(o.Created.Compare(other.Created), ", New: "cmp.Or("},
		{Name: "what was begun is taken away", File: "overlap.go", Run: "TestOlderRollout", Old: "return owner, p.holders[p.snapshot[at].UID] != p.rollouts[i].Policy.UID", New: "return owner, true"},
		{Name: "all nodes are looked at as if they were another's", File: "overlap.go", Run: "TestDisjointRollouts", Old: "	if !had {\n", New: "	if !had && false {\n"},
		{Name: "an overlap is told once", File: "overlap.go", Run: "TestOverlapShares", Old: "	case p.overlap(i, &d):\n", New: "	case had || p.overlap(i, &d):\n"},
		{Name: "each node has a text of its own", File: "../owners.go", Run: "TestOverlapShares", Old: "if y[owner] == nil {", New: "if true {"},
		{Name: "a rollout that is stopped is one that can't be stored", File: "ahead.go", Run: "TestStopWithWhat", Old: "ok, err := p.store(i, true)", New: "ok, err := p.storeProgress(i)"},
		{Name: "what can't be followed loses its nodes", File: "overlap.go", Run: "TestInvalidRolloutKeeps", Old: "range r.Progress.Members {", New: "range r.Progress.Members[:0] {"},
		{Name: "a rollout that is gone is seen for the first time at each pass", File: "ahead.go", Run: "TestSlotOfAGoneRollout",
			Old: "p.c.mind.orphans[r.Policy.UID] = r.Progress\n", New: "delete(p.c.mind.orphans, r.Policy.UID)\n"},
		{Name: "that it is switched on nobody notices", File: "gather.go", Run: "TestSwitchedOn", Old: ", RetryAfter: offAgain})", New: "})"},
		{Name: "that it goes on is not told", File: "edges.go", Run: "TestStalledIsCounted", Old: "			f(r.Name, r.Stalled)\n", New: "			f(r.Name, \"PausedTooLong\")\n"},
		{Name: "who is gone is stalled", File: "edges.go", Run: "TestStalledIsCounted", Old: "				f(name, \"\")\n", New: "				f(name, \"-\")\n"},
		{Name: "an edge is not counted", File: "edges.go", Run: "TestMetrics", Old: "f != nil && from != to {", New: "f != nil && from != to && to != protocol.Granted {"},
	})
}

// The same for marks that come with cordons.
func TestMarkMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "no mark waits for its cordon", File: "marks.go", Run: "TestMarkComes", Old: "return left > 0\n", New: "return left > time.Hour\n"},
		{Name: "a node that waits is not marked", File: "marks.go", Run: "TestNodeThatWaits", Old: "return left > 0\n", New: "return true\n"},
		{Name: "no mark comes with the cordon", File: "act.go", Run: "TestMarkComes", Old: "m.overtake(annotations, want)", New: "n.mark, nil; _ = want"},
		{Name: "the mark is decided on a Node that was read before", File: "act.go", Run: "TestScaleDownMarkOfOthers",
			Old: "m.overtake(annotations, want)", New: "m.overtake(n.Annotations, want)"},
		{Name: "the mark of a later attempt is overwritten", File: "marks.go", Run: "TestMarkIsOvertaken", Old: "case m.Attempt > want.Attempt || ", New: "case "},
		{Name: "the baseline is that of a node that was touched", File: "marks.go", Run: "TestMarkIsOvertaken",
			Old: "	if m.tells() && (m.Rollout == want.Rollout || want.Lost) {\n", New: "	if false {\n"},
		{Name: "a node is the measure of itself", File: "marks.go", Run: "TestLostBaseline", Old: "late && p.c.o.Health != nil {", New: "late && p.c.o.Health == nil {"},
		{Name: "a node without a measure is well", File: "gather.go", Run: "TestLostBaseline", Old: "p.unmeasured(n); is {", New: "p.unmeasured(n); is && v.Reason == \"-\" {"},
		{Name: "what a later rollout has not marked is not told", File: "marks.go", Run: "TestBaselineOutlives",
			Old: "n.mark.tells() && (late || n.mark.Rollout == s.Rollout)", New: "n.mark.tells() && n.mark.Rollout == s.Rollout"},
		{Name: "a list that is behind has lost a mark", File: "marks.go", Run: "TestTwoControllers",
			Old: "late, ok = p.isLate(n, s); late || !ok {", New: "ok = true; late || !ok {"},
		{Name: "a node of unknown health is granted", File: "marks.go", Run: "TestNoGrant", Old: "if rides && d.Do != protocol.EventGrant {", New: "if rides {"},
		{Name: "a node of unknown health is cordoned", File: "act.go", Run: "TestNoGrant", Old: "	if !ok {\n		return false, false, false\n	}\n	is :=", New: "	_ = ok\n	is :="},
	})
}

// The same for what goes before what.
func TestSoonerMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "nobody looks whether an attempt has ended", File: "sooner.go", Run: "TestPlaceThat", Old: "return len(open) > 0 && s.Ended(open)", New: "return len(open) > 0 && s.Ended(nil)"},
		{Name: "nodes that are admitted wait for the others", File: "round.go", Run: "TestPlaceThat", Old: "n == 0 && next.Epoch > p.ledger.Epoch ||", New: "next.Epoch < p.ledger.Epoch ||"},
		{Name: "who aborts waits for what has begun", File: "round.go", Run: "TestAbortIsAnswered", Old: "alone || early && d.Do == protocol.EventRevoke", New: "alone"},
		{Name: "who aborts waits for what has begun when the ledger is closed", File: "round.go", Run: "TestAbortIsAnswered",
			Old: "n <= 1 && !reflect.DeepEqual(next.Closures, p.ledger.Closures)", New: "false"},
		{Name: "a revocation has its turn", File: "round.go", Run: "TestAbortIsAnswered", Old: "do == protocol.EventGrant || do == protocol.EventRevoke", New: "do == protocol.EventGrant"},
		{Name: "who was first is not looked at", File: "act.go", Run: "TestAbortIsAnswered", Old: "why == protocol.EventRevoke && p.reread(n)", New: "why == protocol.EventGone && p.reread(n)"},
		{Name: "a slot is freed as the shadow was read again", File: "act.go", Run: "TestEndDuringARevocation", Old: "err != nil || ended || later", New: "err != nil || ended && false || later"},
		{Name: "a pass can be cut short for ever", File: "sooner.go", Run: "TestPassesAreCut", Old: "|| p.c.mind.cuts >= cuts {", New: "{"},
		{Name: "a pass is cut short before it writes", File: "sooner.go", Run: "TestPassesAreCut", Old: "!ok || p.writes == since || ", New: "!ok || "},
		{Name: "nobody says that the ledger can't be read", File: "gather.go", Run: "TestUnreadable", Old: "return errors.Join(err, p.unreadable(err))", New: "return err"},
		{Name: "what has ended before is new", File: "sooner.go", Run: "TestStuckEnd", Old: "&& !Ended(n.shadow.Shadow, slot.Attempt) {", New: "{"},
	})
}
