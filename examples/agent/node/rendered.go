// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/drift"
	"github.com/belayproject/belay/configsync/history"
	"github.com/belayproject/belay/examples/agent/render"
)

// Rendered writes the file at path, an absolute one, durably, and gives add an entry when somebody else has. store may be nil. The place is made ready
// by the first write.
func Rendered(ctx context.Context, path string, p drift.Policy, store configsync.Store, add func(context.Context, history.Entry) error) (*drift.Watch, error) {
	var file *render.File
	return drift.Open(ctx, drift.Options{
		Path: path, Policy: p, Store: store,
		Write: func(payload []byte) (err error) {
			if file == nil {
				if file, err = render.Open(path); err != nil {
					return err
				}
			}
			return file.Write(payload)
		},
		Tell: func(ctx context.Context, f drift.Finding) error {
			return add(ctx, history.Entry{Kind: history.Drifted, Why: f.String()})
		},
	})
}
