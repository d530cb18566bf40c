// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/agent/internal/admin"
)

// Options are those of the agent's Syncer, as far as its records and decisions depend on them.
type Options = configsync.Options[*kubelet.Config]

// Open gives the running agent on dir, or its state directory while none runs. live says which.
func Open(ctx context.Context, dir string, o Options) (a admin.Agent, live bool, err error) {
	c, err := admin.Dial(ctx, dir)
	switch {
	case err == nil:
		return c, true, nil
	case errors.Is(err, admin.ErrNotRunning):
		return &Stopped{Dir: dir, Options: o}, false, nil
	default:
		return nil, false, err
	}
}
