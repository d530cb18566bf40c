// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/agent/internal/node"
)

// PrepareState moves the state files of the kubelet aside that would stop it under a config, and logs each move.
// The kubelet must not run. Nothing is moved where the whole document of the config is not known, as with a codec of
// the program's own.
func PrepareState(
	ctx context.Context, log klog.Logger, files kubelet.StateFiles, o node.Options, c *kubelet.Config,
) error {
	document := documentOf(c)
	if len(document) == 0 {
		return nil
	}
	if o.Store != nil { // a nil store would be records
		files.Records = o.Store
	}
	moved, err := files.Prepare(ctx, document)
	for _, m := range moved {
		log.Info("Moved a state file of the kubelet", "move", m, "rootDir", files.RootDir)
	}
	return err
}
