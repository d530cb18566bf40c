// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/mutate"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A plane is the nodes of a fleet that are of the control plane, and have to be backed up first.
type plane struct {
	*realFleet
	names []string
	// full: there is room for a backup. declined is how often there was none, saved which nodes were backed up.
	full     bool
	declined int
	saved    []string
}

// newPlane has the first n nodes of a fleet be of the control plane.
func newPlane(f *realFleet, n int) *plane {
	f.t.Helper()
	p := &plane{realFleet: f}
	for i := range n {
		name := fmt.Sprintf("%s-%02d", f.domain, i)
		label := []byte(`{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`)
		_, err := f.core.CoreV1().Nodes().Patch(f.ctx(), name, types.MergePatchType, label, metav1.PatchOptions{})
		f.must(err)
		p.names = append(p.names, name)
		f.all[name].preflight = func(context.Context) error { return p.backup(name) }
	}
	soon := []byte(`{"spec":{"retryAfter":"200ms"}}`)
	_, err := f.bed.client.Resource(v1alpha1.RolloutsResource).Patch(f.ctx(), f.domain, types.MergePatchType, soon, metav1.PatchOptions{})
	f.must(err)
	return p
}

// backup is the hook before a node of the control plane is touched.
func (p *plane) backup(name string) error {
	p.untouched(name)
	if p.full {
		p.declined++
		return &nodeagent.DeclinedError{Reason: "NoBackup", Message: "there is no room for it"}
	}
	p.saved = append(p.saved, name)
	return nil
}

// untouched fails if a node was cordoned or changed.
func (p *plane) untouched(name string) {
	p.t.Helper()
	n, err := p.core.CoreV1().Nodes().Get(p.ctx(), name, metav1.GetOptions{})
	p.must(err)
	if n.Spec.Unschedulable || p.all[name].applied > 0 {
		p.t.Errorf("R-RO-24: node %q is cordoned: %t, and was changed %d times, before its backup", name, n.Spec.Unschedulable, p.all[name].applied)
	}
}

// step makes a pass and has the agents do what they can: never is more than one node of the control plane away.
func (p *plane) step() {
	p.t.Helper()
	p.pass()
	p.agents()
	l, _, err := must1(kube.NewLedgerStore(p.bed.client, p.domain)).Load(p.ctx())
	p.must(err)
	if at := slices.DeleteFunc(l.Slots, func(s protocol.Slot) bool { return !slices.Contains(p.names, s.Node) }); len(at) > 1 {
		p.t.Errorf("R-RO-24: %d nodes of the control plane are away at a time: %+v", len(at), at)
	}
}

// until steps until something is true.
func (p *plane) until(what string, done func() bool) {
	p.t.Helper()
	patience := 4 * time.Minute
	if mutate.Running() {
		patience = 40 * time.Second
	}
	for deadline := time.Now().Add(patience); !done(); p.step() {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: the rollout shows %+v; the last error is %v", what, p.rollout(), p.last)
		}
	}
}

// R-RO-24: nodes of the control plane go one at a time under a cap of 50, each after its backup. While a backup is not possible none of them is touched, and the
// other nodes go on.
func TestControlPlaneGoesAfterItsBackup(t *testing.T) {
	p := newPlane(newFleet(newBed(t), "plane", 50), 5) // a majority would stay with two away
	p.full = true
	p.until("the others are done, and backups were tried", func() bool {
		done := 0
		for _, m := range p.all {
			done += m.applied
		}
		return done == fleetSize-len(p.names) && p.declined > len(p.names)
	})
	for _, name := range p.names {
		p.untouched(name)
	}
	if s := p.rollout(); s.Failed != 0 || s.Phase != v1alpha1.RolloutPhase(rollout.Running) {
		t.Errorf("R-RO-24: the rollout is %s with %d failed, want it running: who declines has not failed", s.Phase, s.Failed)
	}
	p.full = false
	p.until("all are done", func() bool { return p.rollout().Phase == v1alpha1.RolloutPhase(rollout.Completed) && p.clean() })
	for _, name := range p.names {
		if m := p.all[name]; m.applied != 1 || !slices.Contains(p.saved, name) {
			t.Errorf("R-RO-24: node %q was changed %d times, backed up: %t, want once, after its backup", name, m.applied, slices.Contains(p.saved, name))
		}
	}
}
