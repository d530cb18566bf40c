// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"github.com/belayproject/belay/examples/internal/agent/apiserver"
	"github.com/belayproject/belay/examples/internal/agent/connect"

	"context"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/examples/internal/agent/history"
	"github.com/belayproject/belay/examples/internal/agent/settings"
)

// Events is what passes an entry of the journal on to the API server, as an event about the node; nil where no API server is named. What is in the
// way is logged: who retries does not say it.
func Events(s *settings.Run) (func(context.Context, history.Entry) error, error) {
	if s.Kubeconfig == "" {
		return nil, nil
	}
	client, err := connect.Client(s.Kubeconfig)
	if err != nil {
		return nil, err
	}
	sender, err := apiserver.NewEventSender(client, s.NodeName)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, e history.Entry) error {
		err := sender.Send(ctx, e)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Event is not sent yet, trying again", "entry", e.N, "kind", e.Kind)
		}
		return err
	}, nil
}
