// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

var _ nodeagent.Shadows = (*AgentShadow)(nil)

// An AgentShadow is the shadow of one node, as its agent reads and writes it: [nodeagent.Shadows].
type AgentShadow struct {
	shadows *Shadows
	node    string
	now     func() time.Time

	mu   sync.Mutex
	last *v1alpha1.NodeShadow // as it was read or written last, so that a Store after a Read is one call
}

// NewAgentShadow returns the shadow of the named node, which need not exist. now is the clock of the times that are written for people; nil means
// time.Now.
func NewAgentShadow(shadows *Shadows, node string, now func() time.Time) *AgentShadow {
	if now == nil {
		now = time.Now
	}
	return &AgentShadow{shadows: shadows, node: node, now: now}
}

// Read implements [nodeagent.Shadows].
func (a *AgentShadow) Read(ctx context.Context) (nodeagent.Shadow, string, error) {
	sh, err := a.get(ctx)
	if err != nil {
		return nodeagent.Shadow{}, "", err
	}
	seen := nodeagent.Shadow{Node: sh.Name, UID: sh.Spec.NodeUID, Orders: v1alpha1.OrdersOf(sh.Spec), Status: saidIn(sh.Status)}
	return seen, sh.ResourceVersion, nil
}

// Store implements [nodeagent.Shadows].
func (a *AgentShadow) Store(ctx context.Context, s nodeagent.Status, version string) error {
	base, err := a.base(ctx, version)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", nodeagent.ErrConflict, err)
	case err != nil:
		return err
	case base.ResourceVersion != version:
		return fmt.Errorf("%s %q is version %q, not %q: %w", a.shadows.objects.kind, a.node, base.ResourceVersion, version, nodeagent.ErrConflict)
	}
	status := *base.Status.DeepCopy()
	say(&status, s)
	next, err := a.shadows.Report(ctx, base, status, a.now())
	if errors.Is(err, rollout.ErrConflict) {
		return fmt.Errorf("%w: %w", nodeagent.ErrConflict, err)
	}
	if err != nil {
		return err
	}
	a.remember(next)
	return nil
}

func (a *AgentShadow) base(ctx context.Context, version string) (*v1alpha1.NodeShadow, error) {
	a.mu.Lock()
	last := a.last
	a.mu.Unlock()
	if last != nil && last.ResourceVersion == version {
		return last, nil
	}
	return a.get(ctx)
}

func (a *AgentShadow) get(ctx context.Context) (*v1alpha1.NodeShadow, error) {
	sh, err := a.shadows.Get(ctx, a.node)
	if err != nil {
		return nil, err
	}
	a.remember(sh)
	return sh, nil
}

// remember keeps an object that nobody changes.
func (a *AgentShadow) remember(sh *v1alpha1.NodeShadow) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = sh
}

// say puts what the agent says into a status, and leaves the rest of it as it is.
func say(status *v1alpha1.NodeShadowStatus, s nodeagent.Status) {
	status.SetReport(s.Report)
	status.Current, status.Previous, status.From = refOf(s.Current), refOf(s.Previous), refOf(s.From)
	status.Revertible, status.Disruption, status.BootID = s.Revertible, v1alpha1.Disruption(s.Disruption), s.BootID
	status.Reason, status.Message = s.Reason, s.Message
}

// saidIn is what the agent has said in a status.
func saidIn(s v1alpha1.NodeShadowStatus) nodeagent.Status {
	return nodeagent.Status{
		Report: v1alpha1.ReportOf(s), Current: revisionOf(s.Current), Previous: revisionOf(s.Previous), From: revisionOf(s.From),
		Revertible: s.Revertible, Disruption: nodeagent.Disruption(s.Disruption), BootID: s.BootID, Reason: s.Reason, Message: s.Message,
	}
}

func refOf(r protocol.Revision) *v1alpha1.RevisionRef {
	if r == (protocol.Revision{}) {
		return nil
	}
	return &v1alpha1.RevisionRef{Name: r.Name, Digest: r.Digest}
}

func revisionOf(r *v1alpha1.RevisionRef) protocol.Revision {
	if r == nil {
		return protocol.Revision{}
	}
	return protocol.Revision{Name: r.Name, Digest: r.Digest}
}
