// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"fmt"

	"github.com/belayproject/belay/rollout/protocol"
)

// A ConfigDisrupter is a [ConfigSyncer] that knows what a change of the config takes from the node: configsync.Steered is one.
type ConfigDisrupter interface {
	// Disruption says what the way from the config in use to another one takes, in the words of a [Disruption]; empty where that is not
	// known. refused is why the node would refuse it; empty where it would not. It changes nothing. An error is no answer.
	Disruption(ctx context.Context, config string) (word, refused string, err error)
}

// Preflight implements [Preflighter]: a change that the node's policy forbids is declined. The way back is not asked for.
func (c configUpdater) Preflight(ctx context.Context, a Attempt) error {
	s, ok := c.Syncer.(ConfigDisrupter)
	if !ok || a.Revert {
		return nil
	}
	_, refused, err := s.Disruption(ctx, spelled(a.Revision))
	switch {
	case err != nil:
		return fmt.Errorf("asking what config %q changes: %w", a.Revision, err)
	case refused != "":
		return &DeclinedError{Reason: reasonConfigForbidden, Message: refused}
	}
	return nil
}

// Disruption implements [Disrupter]. It is not known where the syncer is no [ConfigDisrupter].
func (c configUpdater) Disruption(ctx context.Context, _, to protocol.Revision) (Disruption, error) {
	s, ok := c.Syncer.(ConfigDisrupter)
	if !ok {
		return "", nil
	}
	word, _, err := s.Disruption(ctx, spelled(to))
	if err != nil {
		return "", fmt.Errorf("asking what config %q disrupts: %w", to, err)
	}
	switch d := Disruption(word); d {
	case DisruptionNone, DisruptionRestart, DisruptionDrain, DisruptionReboot:
		return d, nil
	}
	return "", nil
}
