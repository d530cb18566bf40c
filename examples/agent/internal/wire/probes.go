// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/internal/agent/connect"
	"github.com/belayproject/belay/examples/internal/agent/settings"
)

// NewWitness returns what looks at what lies below every config of the child. inUse gives the config that the child
// runs, nil for none; pid its process ID, 0 for none.
func NewWitness(s *settings.Run, inUse func() *kubelet.Config, pid func() int) (*kubelet.Witness, error) {
	local := s.On(nil)
	return kubelet.NewWitness(kubelet.Subject{
		Command: s.Child, StateDir: s.StateDir, PID: pid,
		Config: func() []byte { return documentOf(inUse()) },
		Local: func() []byte {
			if local.Init == nil {
				return nil
			}
			object, err := local.Init(context.Background()) // a file of this node
			if err != nil {
				return nil
			}
			config, _, err := local.Codec.Decode(local.Key, object)
			if err != nil {
				return nil
			}
			return documentOf(config)
		},
	})
}

// documentOf returns the whole document of a config as JSON; nil for none.
func documentOf(c *kubelet.Config) []byte {
	if c == nil {
		return nil
	}
	return c.Document
}

// nodeProbes are those of the node, where they are asked for.
func nodeProbes(s *settings.Run, w *kubelet.Witness) ([]configsync.Probe, error) {
	if !s.ProbesNode() || w == nil {
		return nil, nil
	}
	client, err := connect.NodeClient(s.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubelet.NewProbes(client, s.NodeName, w)
}
