// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"testing"
	"testing/synctest"

	configapi "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// wayBack is what a rollout that went through these revisions orders when somebody goes back to the first of them: all that is known of it is the
// entry of the history and the Revision that it names.
func wayBack(t *testing.T, through ...protocol.Revision) protocol.Revision {
	t.Helper()
	shelf := map[string]*v1alpha1.Revision{}
	r := &v1alpha1.Rollout{}
	for i, p := range through {
		kept := &v1alpha1.Revision{Spec: v1alpha1.RevisionSpec{
			Digest: p.Digest, ConfigMapRef: &configapi.ConfigMapRef{Namespace: "configs", Name: p.Name, Digest: p.Digest},
		}}
		kept.Name = p.Name
		shelf[p.Name] = kept
		r.Spec.Revision = v1alpha1.PinnedRevision(p)
		r.Status.History = append(r.Status.History, v1alpha1.HistoryEntry{
			Number: int64(i + 1), RolloutTargets: v1alpha1.RolloutTargets{Revision: r.Spec.Revision}, Result: v1alpha1.HistoryCompleted,
		})
	}
	r.Status.Progress = &v1alpha1.RolloutProgress{}
	r.Spec.Verb = &v1alpha1.Verb{Request: "back", Do: v1alpha1.DoRollback, Number: 1}
	heeded := v1alpha1.HeedRollback(r, func(name string) (*v1alpha1.Revision, bool) { found, ok := shelf[name]; return found, ok })
	if heeded.Status.Rollback == nil {
		t.Fatalf("R-CS-90: the rollback is refused: %+v", heeded.Status.Progress)
	}
	return protocol.Revision(heeded.Status.Rollback.Revision)
}

// R-CS-90: a node goes back to the revision before the last one by name, from what the history keeps: also when the ConfigMap was deleted and
// created again, which makes it another object with the same content. With other content it is not that revision, and the node stays as it is.
// L-CS-27, L-CS-40.
func TestRevisionComesBackFromHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		all := []protocol.Revision{s.config("one", "good"), s.config("two", "good, too"), s.config("three", "good as well"), s.config("four", "best")}
		for _, r := range all {
			s.roll(r, false)
			s.wants(protocol.PhaseDone, "", r)
		}
		was := s.server.Object("configs", "one")
		s.server.Delete("configs", "one")
		forged := s.server.Put("configs", "one", map[string]string{"word": "forged"}, true)
		back := wayBack(t, all...)
		s.roll(back, false)
		s.wants(protocol.PhaseFailedClean, "TimedOut", all[3])
		s.server.Delete("configs", "one")
		again := s.server.Put("configs", "one", was.Data, true)
		if again.UID == was.UID || again.UID == forged.UID || again.Digest() != was.Digest() {
			t.Fatalf("created again: UID %q, digest %s; want another object with the same content", again.UID, again.Digest())
		}
		s.roll(back, false)
		s.wants(protocol.PhaseDone, "", all[0])
	})
}
