// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "a config is adopted without its checkpoint",
			Func:    "(*adopter).adoptObject",
			Replace: "a.checker.objects.keepCheckpoint(ctx, obj)",
			With:    "error(nil)",
			Run:     "TestWriteOrderOfAdoption|TestNewConfig",
		},
		{
			Why:     "a restart is not announced before it happens",
			Func:    "(*restartControl).recordPlan",
			Replace: "r.tracker.PlanRestart(ctx, cause)",
			With:    "error(nil)",
			Run:     "TestWriteOrderOfAdoption",
		},
		{
			Why:  "a config is adopted whatever its checks say",
			Func: "(*adopter).findRefusal",
			Replace: `switch p.check.Outcome {
		case lkg.CheckOK:
			book.keepPage(ref, p)
			return nil, nil
		case lkg.CheckUnavailable, lkg.CheckUndecided:
			return nil, fmt.Errorf("judging the config: %w", p.check.Err)
		}`,
			With: `switch p.check.Outcome {
		case p.check.Outcome:
			book.keepPage(ref, p)
			return nil, nil
		case lkg.CheckUnavailable, lkg.CheckUndecided:
			return nil, fmt.Errorf("judging the config: %w", p.check.Err)
		}`,
			Run: "TestConfigThatFailsChecksIsNeverStarted",
		},
		{
			Why:     "the last known good config has no copy of its own",
			Func:    "objectStore.keepGood",
			Replace: "return s.store.Put(ctx, goodStream(r), obj.Raw)",
			With: `_ = obj
	return nil`,
			Run: "TestGoodConfigOutlivesItsCheckpoint",
		},
		{
			Why:  "pruning deletes the last known good config",
			Func: "objectStore.pruneUnnamed",
			Replace: `for _, r := range []lkg.Ref{st.Current.Ref, st.LastKnownGood, st.Previous} {
		if r.IsLocal() {
			continue
		}
		keep[checkpointStream(r.UID)], keep[goodStream(r)] = true, true
	}`,
			With: `for _, r := range []lkg.Ref{st.Current.Ref} {
		if r.IsLocal() {
			continue
		}
		keep[checkpointStream(r.UID)], keep[goodStream(r)] = true, true
	}`,
			Run: "TestGoodConfigOutlivesItsCheckpoint",
		},
		{
			Why:     "the UID of the fetched object is not compared",
			Func:    "CheckObject",
			Replace: `spec.UID != "" && spec.UID != obj.UID`,
			With:    "false",
			Run:     "TestTroubleWithSource",
		},
		{
			Why:     "a mutable object without a digest is accepted",
			Func:    "CheckObject",
			Replace: `spec.Policy == Pin && spec.Digest == "" && !obj.Immutable`,
			With:    "false",
			Run:     "TestMutableObject",
		},
		{
			Why:     "an unreachable source restarts a live process",
			Func:    "live.nextVerdict",
			Replace: "st.Desired = lkg.Outcome{Kind: lkg.DesiredCorrect}",
			Run:     "TestTroubleNeverMovesALiveProcess",
		},
		{
			Why:     "a panic of a codec ends the agent",
			Func:    "(*checker).decodeConfig",
			Replace: "recover()",
			With:    "error(nil)",
			Run:     "TestConfigThatFailsChecksIsNeverStarted",
		},
		{
			Why:     "YAML anchors pass the gate",
			Func:    "(*walker).walk",
			Replace: `n.Anchor != "" || n.Kind == yamlv3.AliasNode`,
			With:    "false",
			Run:     "TestGateRefuses$",
		},
		{
			Why:     "a UID may be a path",
			Func:    "validateUID",
			Replace: `len(uid) > 100 || !isPlain(uid) || strings.Contains(uid, "..")`,
			With:    `uid == "" || strings.Contains(uid, "\x00")`,
			Run:     "FuzzHostileObject",
		},
	})
}
