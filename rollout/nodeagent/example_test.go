// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/rollouttest"
)

// kernel is an updater of a node that runs a kernel of some version.
type kernel struct{ runs protocol.Revision }

func (k *kernel) Observe(context.Context) (nodeagent.Observation, error) {
	return nodeagent.Observation{Current: k.runs, BootID: "boot-1"}, nil
}

func (k *kernel) Prepare(context.Context, protocol.Revision) error { return nil }

func (k *kernel) Apply(_ context.Context, a nodeagent.Attempt) error {
	fmt.Printf("apply %s for attempt %s\n", a.Revision.Name, a.Key)
	k.runs = a.Revision
	return nil
}

func (k *kernel) Verify(context.Context, nodeagent.Attempt) (nodeagent.Health, error) {
	return nodeagent.Health{Verdict: nodeagent.Pass}, nil
}

func (k *kernel) Revert(context.Context, nodeagent.Attempt) error { return nodeagent.ErrIrreversible }

// memory is a disk for examples: use a checkpoint.Store.
type memory map[string][]byte

func (m memory) Get(_ context.Context, stream string) ([]byte, error) {
	if payload, ok := m[stream]; ok {
		return payload, nil
	}
	return nil, fs.ErrNotExist
}

func (m memory) Put(_ context.Context, stream string, payload []byte) error {
	m[stream] = payload
	return nil
}

// An agent takes one attempt. In production a controller gives the orders, and Run calls Reconcile.
func Example() {
	ctx := klog.NewContext(context.Background(), klog.Logger{})
	shadows, ledger := &rollouttest.Shadows{}, protocol.Ledger{}
	shadows.Create("node-1", "c5a4b820", ledger)
	agent, err := nodeagent.New(nodeagent.Options{
		Shadows: shadows, Disk: memory{}, Updater: &kernel{runs: protocol.Revision{Name: "linux-6.12"}},
		NodeUID:   func(context.Context) (string, error) { return "c5a4b820", nil },
		VerifyFor: time.Millisecond, VerifyEvery: time.Millisecond,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	reconcile := func() {
		after, err := agent.Reconcile(ctx, "node-1")
		for ; after > 0 && err == nil; after, err = agent.Reconcile(ctx, "node-1") {
			<-time.After(after)
		}
		s := shadows.Shadow().Status
		fmt.Printf("runs %s, attempt %d: %q %v\n", s.Current, s.Report.Attempt, s.Report.Phase, err)
	}

	reconcile() // the agent says what the node runs
	ledger, _ = ledger.Admit(protocol.Admission{Shadow: shadows.Protocol(), Rollout: "r"}, []protocol.Cap{{Max: 1}}, nil)
	_ = shadows.Order(func(sh protocol.Shadow) (protocol.Orders, error) {
		return sh.Give(ledger.Slots[0], "linux-6.18", false)
	})
	reconcile() // it commits; the controller drains the node
	_ = shadows.Order(func(sh protocol.Shadow) (protocol.Orders, error) { return sh.Go(1) })
	reconcile()
	// Output:
	// runs linux-6.12, attempt 0: "" <nil>
	// runs linux-6.12, attempt 1: "Committed" <nil>
	// apply linux-6.18 for attempt c5a4b820-1
	// runs linux-6.18, attempt 1: "Done" <nil>
}
