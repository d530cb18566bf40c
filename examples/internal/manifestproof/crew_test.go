// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/examples/internal/agent/connect"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// fatal begins the name of a revision with which no node is well.
const fatal = "fatal"

// runAgent is "agent update" with the arguments of a container, but for what the hooks and the disk are: those of a box.
func runAgent(ctx context.Context, args []string, b *box) error {
	if len(args) == 0 || args[0] != "update" {
		return fmt.Errorf("the arguments are %q, want update and its flags", args)
	}
	var s settings.Update
	flags := pflag.NewFlagSet("update", pflag.ContinueOnError)
	s.AddFlags(flags)
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return err
	}
	part, err := connect.Part(&s, b, b, nil)
	if err != nil {
		return err
	}
	return part.Run(klog.NewContext(ctx, klog.Logger{}))
}

// A box is a machine that does what its agent says, with a disk. It begins with the revision v0.
type box struct {
	mu                sync.Mutex
	current, previous protocol.Revision
	record            map[string][]byte
	doomed            *atomic.Bool // verifications of fatal revisions fail from now on
}

func newBox(doomed *atomic.Bool) *box {
	v0 := protocol.Revision{Name: "v0", Digest: v1alpha1.OpaqueDigest("v0")}
	return &box{doomed: doomed, current: v0, record: map[string][]byte{}}
}

// Get implements [nodeagent.Disk].
func (b *box) Get(_ context.Context, stream string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if payload, ok := b.record[stream]; ok {
		return payload, nil
	}
	return nil, fs.ErrNotExist
}

// Put implements [nodeagent.Disk].
func (b *box) Put(_ context.Context, stream string, payload []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.record[stream] = payload
	return nil
}

// Observe implements [nodeagent.Updater].
func (b *box) Observe(context.Context) (nodeagent.Observation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return nodeagent.Observation{Current: b.current, Previous: b.previous, BootID: "boot", CanRevert: true}, nil
}

// Prepare implements [nodeagent.Updater].
func (*box) Prepare(context.Context, protocol.Revision) error { return nil }

// Disruption implements [nodeagent.Disrupter].
func (*box) Disruption(context.Context, protocol.Revision, protocol.Revision) (nodeagent.Disruption, error) {
	return nodeagent.DisruptionDrain, nil
}

// Apply implements [nodeagent.Updater].
func (b *box) Apply(_ context.Context, a nodeagent.Attempt) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.Revision != b.current {
		b.previous, b.current = b.current, a.Revision
	}
	return nil
}

// Verify implements [nodeagent.Updater].
func (b *box) Verify(_ context.Context, a nodeagent.Attempt) (nodeagent.Health, error) {
	if strings.HasPrefix(a.Revision.Name, fatal) {
		if !b.doomed.Load() {
			return nodeagent.Health{Verdict: nodeagent.NotYet, Reason: "Starting", Message: "nothing runs yet"}, nil
		}
		return nodeagent.Health{Verdict: nodeagent.Fail, Reason: "Fatal", Message: "nothing runs any more"}, nil
	}
	return nodeagent.Health{Verdict: nodeagent.Pass}, nil
}

// Revert implements [nodeagent.Updater].
func (b *box) Revert(ctx context.Context, a nodeagent.Attempt) error { return b.Apply(ctx, a) }
