// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/examples/internal/controller/page"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

var _ page.Source = (*Plane)(nil)

// Changes returns a channel that has a value after something has changed, until stop is called.
func (p *Plane) Changes() (wake <-chan struct{}, stop func()) { return p.changed.hear() }

// Seen implements [page.Source]: the caches that the controllers decide by, whether this process leads or not. Rollouts of other domains are left
// out, as their ledgers are not watched here. A ledger that is not there yet has no slots.
func (p *Plane) Seen() (*view.Seen, bool) {
	if !p.synced.Load() {
		return nil, false
	}
	s := &view.Seen{
		Nodes: p.pods.View().Nodes(), Revisions: values(p.revisions.List()), Shadows: values(p.shadows.List()), Now: time.Now(), Health: p.verdict,
		Caps: p.caps(), OwnNode: p.s.OwnNode,
	}
	if why := p.toggle.off(); why != "" {
		s.Gates = []rollout.Verdict{view.Disabled(why)}
	}
	for _, r := range p.rollouts.List() {
		if slices.Contains(p.s.Domains, r.Spec.Domain) {
			s.Rollouts = append(s.Rollouts, *r)
		}
	}
	for domain, store := range p.ledgers {
		l, _, seen := store.Seen()
		if seen {
			s.Ledgers = append(s.Ledgers, v1alpha1.DisruptionLedger{ObjectMeta: metav1.ObjectMeta{Name: domain}, Spec: v1alpha1.LedgerSpecOf(l)})
		}
	}
	return s, true
}

// verdict is the one on a node that is not touched.
func (p *Plane) verdict(n *corev1.Node) rollout.Verdict {
	return p.health.Verdict(context.Background(), controller.Node{Name: n.Name, UID: string(n.UID)}, "") // it asks nobody
}

// On implements [page.Source].
func (p *Plane) On(node string) ([]*corev1.Pod, []policyv1.PodDisruptionBudget) {
	pods := p.pods.View().Pods(node)
	var budgets []policyv1.PodDisruptionBudget
	asked := map[string]bool{}
	for _, pod := range pods {
		if asked[pod.Namespace] {
			continue
		}
		asked[pod.Namespace] = true
		for _, b := range p.pods.View().Budgets(pod.Namespace) {
			budgets = append(budgets, *b)
		}
	}
	return pods, budgets
}

func values[T any](all []*T) []T {
	copies := make([]T, len(all))
	for i, v := range all {
		copies[i] = *v
	}
	return copies
}
