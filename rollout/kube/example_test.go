// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
)

// A person closes the ledger of a domain: from then on nobody admits a node there.
func ExampleNewConfigMapLedger() {
	client := fake.NewClientset() // a real one in production
	ledger, err := kube.NewConfigMapLedger(client.CoreV1().ConfigMaps("belay-system"), "ledger-workers")
	if err != nil {
		fmt.Println(err)
		return
	}
	closed, err := rollout.Update(context.Background(), ledger, true, func(l protocol.Ledger) (protocol.Ledger, error) {
		return l.Close(protocol.Closure{Request: "stop-everything", Reason: "the network is being rebuilt"}), nil
	})
	fmt.Println(closed.ClosedFor("any").Reason, err)
	// Output: the network is being rebuilt <nil>
}
