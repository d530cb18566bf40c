// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/internal/agent/drift"
	"github.com/belayproject/belay/examples/internal/agent/history"
	"github.com/belayproject/belay/examples/internal/agent/render"
)

// Rendered writes the file at place, an absolute one, durably, or takes it away, and gives add an entry when somebody else has. store may be nil. The
// place is made ready by the first of both.
func Rendered(ctx context.Context, place render.Place, p drift.Policy, store configsync.Store, add func(context.Context, history.Entry) error) (*drift.Watch, error) {
	var file *render.File
	open := func() (err error) {
		if file == nil {
			file, err = place.Open()
		}
		return err
	}
	return drift.Open(ctx, drift.Options{
		Path: place.Path, Policy: p, Store: store,
		Write: func(payload []byte) error {
			if err := open(); err != nil {
				return err
			}
			return file.Write(payload)
		},
		Remove: func() error {
			if err := open(); err != nil {
				return err
			}
			return file.Remove()
		},
		Tell: func(ctx context.Context, f drift.Finding) error {
			return add(ctx, history.Entry{Kind: history.Drifted, Why: f.String()})
		},
	})
}
