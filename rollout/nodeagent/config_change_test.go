// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
)

// knowing is a syncer with a policy.
type knowing struct {
	syncer
	word, refused string
	err           error
}

// Disruption implements nodeagent.ConfigDisrupter.
func (k *knowing) Disruption(context.Context, string) (word, refused string, err error) {
	return k.word, k.refused, k.err
}

// C-20: what a config's change takes from the node is what the syncer says; what its policy forbids is declined before anything is committed,
// unless it is the way back.
func TestConfigKnowsWhatItDisrupts(t *testing.T) {
	for word, want := range map[string]nodeagent.Disruption{
		"None": nodeagent.DisruptionNone, "Restart": nodeagent.DisruptionRestart, "Drain": nodeagent.DisruptionDrain, "Reboot": nodeagent.DisruptionReboot,
		"": "", "Anything": "",
	} {
		c := updaterOf(t, nodeagent.Config{Syncer: &knowing{word: word}})
		if got, err := c.Disruption(t.Context(), protocol.Revision{}, protocol.Revision{Name: "v2"}); got != want || err != nil {
			t.Errorf("the syncer says %q: %q, %v; want %q", word, got, err, want)
		}
		if err := c.Preflight(t.Context(), nodeagent.Attempt{}); err != nil {
			t.Errorf("the syncer says %q: %v, want that the attempt goes on", word, err)
		}
	}
	forbidden := updaterOf(t, nodeagent.Config{Syncer: &knowing{refused: "field a must not be changed"}})
	var declined *nodeagent.DeclinedError
	err := forbidden.Preflight(t.Context(), nodeagent.Attempt{})
	if !errors.As(err, &declined) || declined.Reason != "ConfigForbidden" || declined.Message != "field a must not be changed" {
		t.Errorf("forbidden: %v, want that it is declined", err)
	}
	if err := forbidden.Preflight(t.Context(), nodeagent.Attempt{Revert: true}); err != nil {
		t.Errorf("the way back: %v, want that it is open", err)
	}
	silent := updaterOf(t, nodeagent.Config{Syncer: &knowing{err: errBoom}})
	_, err = silent.Disruption(t.Context(), protocol.Revision{}, protocol.Revision{})
	if err2 := silent.Preflight(t.Context(), nodeagent.Attempt{}); !errors.Is(err, errBoom) || !errors.Is(err2, errBoom) {
		t.Errorf("no answer: %v and %v, want the error", err, err2)
	}
	if d, err := updaterOf(t, nodeagent.Config{Syncer: &syncer{}}).Disruption(t.Context(), protocol.Revision{}, protocol.Revision{}); d != "" || err != nil {
		t.Errorf("a syncer that doesn't know: %q, %v", d, err)
	}
}
