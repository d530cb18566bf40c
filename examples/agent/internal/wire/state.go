// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/agent/internal/node"
)

// PrepareState moves the state files of the kubelet aside that would stop it under a config, and logs each move.
// The kubelet must not run.
func PrepareState(
	ctx context.Context, log klog.Logger, files kubelet.StateFiles, o node.Options, c *kubelet.Config,
) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if o.Store != nil { // a nil store would be records
		files.Records = o.Store
	}
	moved, err := files.Prepare(ctx, text)
	for _, m := range moved {
		log.Info("Moved a state file of the kubelet", "move", m, "rootDir", files.RootDir)
	}
	return err
}
