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

// An AgentShadow is the shadow of one node, as its agent reads and writes it. With an agent that calls See, a Read is no
// call: what was seen may be older than what is stored, and then nothing can be stored on it, and the next Read asks the
// API server.
type AgentShadow interface {
	nodeagent.Shadows
	// See tells of a version that a watch has shown, such as that of a [Cache]; nil says that there is no shadow. A Read
	// asks the API server once all the same, and again after an error of a Store: what was seen before that may be older
	// than what this agent has written.
	See(sh *v1alpha1.NodeShadow)
}

type agentShadow struct {
	shadows *Shadows
	node    string
	now     func() time.Time

	mu    sync.Mutex
	last  *v1alpha1.NodeShadow // the newest one that was read, written or seen, so that a Store after a Read is one call
	asked bool                 // last is no older than an answer of the API server, in this life and since the last error of a Store
	seen  bool                 // there is a watch
}

// NewAgentShadow returns the shadow of the named node, which need not exist. now is the clock of the times that are written for people; nil means
// time.Now.
func NewAgentShadow(shadows *Shadows, node string, now func() time.Time) (AgentShadow, error) {
	check := checkerFor("NewAgentShadow")
	check.Require("shadows", shadows, "see NewShadows")
	check.Require("node", node, nodeRemedy)
	if err := check.Err(); err != nil {
		return nil, err
	}
	if now == nil {
		now = time.Now
	}
	return &agentShadow{shadows: shadows, node: node, now: now}, nil
}

// See implements [AgentShadow].
func (a *agentShadow) See(sh *v1alpha1.NodeShadow) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen = true; sh == nil {
		a.last, a.asked = nil, false
	} else if a.asked && behind(a.last, sh) {
		a.last = sh
	}
}

// Read implements [nodeagent.Shadows].
func (a *agentShadow) Read(ctx context.Context) (nodeagent.Shadow, string, error) {
	a.mu.Lock()
	sh, known := a.last, a.seen && a.asked
	a.mu.Unlock()
	if !known {
		var err error
		if sh, err = a.get(ctx); err != nil {
			return nodeagent.Shadow{}, "", err
		}
	}
	return readIn(sh), sh.ResourceVersion, nil
}

func readIn(sh *v1alpha1.NodeShadow) nodeagent.Shadow {
	return nodeagent.Shadow{Node: sh.Name, UID: sh.Spec.NodeUID, Orders: v1alpha1.OrdersOf(sh.Spec), Status: saidIn(sh.Status)}
}

// Store implements [nodeagent.Shadows].
func (a *agentShadow) Store(ctx context.Context, s nodeagent.Status, version string) error {
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
	next, err := a.shadows.report(ctx, base, status, a.now())
	if err != nil { // it may have been written all the same
		a.forget()
	}
	if errors.Is(err, rollout.ErrConflict) {
		return fmt.Errorf("%w: %w", nodeagent.ErrConflict, err)
	}
	if err != nil {
		return err
	}
	a.remember(next)
	return nil
}

func (a *agentShadow) base(ctx context.Context, version string) (*v1alpha1.NodeShadow, error) {
	a.mu.Lock()
	last := a.last
	a.mu.Unlock()
	if last != nil && last.ResourceVersion == version {
		return last, nil
	}
	return a.get(ctx)
}

func (a *agentShadow) get(ctx context.Context) (*v1alpha1.NodeShadow, error) {
	sh, err := a.shadows.read(ctx, a.node)
	if err != nil {
		return nil, err
	}
	a.remember(sh)
	return sh, nil
}

// remember keeps an answer of the API server that nobody changes, unless a newer one is known.
func (a *agentShadow) remember(sh *v1alpha1.NodeShadow) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked = true; a.last == nil || !behind(sh, a.last) {
		a.last = sh
	}
}

// forget has the next Read ask the API server.
func (a *agentShadow) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last, a.asked = nil, false
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
