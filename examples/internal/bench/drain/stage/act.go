// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace is where the play's pods are.
func (p *Play) Namespace() string { return p.name }

// Evict evicts some healthy pods, one after the other, in nobody's name.
func (p *Play) Evict(ctx context.Context, n int) error {
	for _, name := range p.healthy(n) {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: name}}
		if err := p.stage.client.PolicyV1().Evictions(p.name).Evict(ctx, eviction); err != nil {
			return err
		}
	}
	return nil
}

func (p *Play) healthy(n int) (names []string) {
	_ = p.Observer.Look(func(seen Seen) { // a blind observer shows at the next Await
		for _, pod := range seen.All {
			if pod.ready && len(names) < n {
				names = append(names, pod.Name)
			}
		}
	})
	return names
}

// Displace takes the pods away from the nodes at once, as nodes that fail do, and waits until others of the same names are healthy
// elsewhere.
func (p *Play) Displace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	now := int64(0)
	for _, name := range p.healthy(p.Pods()) {
		if err := p.stage.client.CoreV1().Pods(p.name).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			return err
		}
	}
	nodes := p.On()
	return p.Observer.Await(ctx, func(seen Seen) bool {
		return seen.On(nodes) == 0 && seen.Healthy == p.Pods() && seen.Counted == p.Pods()
	})
}

// Budget says how the budget stands, and how many of its units are charged for pods that nobody has deleted: of evictions that
// were cut off, for which the disruption controller waits 2 minutes.
func (p *Play) Budget(ctx context.Context) (string, error) {
	budget, err := p.stage.client.PolicyV1().PodDisruptionBudgets(p.name).Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	now := budget.Status
	err = p.Observer.Look(func(seen Seen) {
		for _, pod := range seen.All {
			if !pod.Asked.IsZero() || !pod.Gone.IsZero() {
				delete(now.DisruptedPods, pod.Name)
			}
		}
	})
	return fmt.Sprintf("%d healthy, %d wanted, %d more may be evicted, %d charged for pods that live on",
		now.CurrentHealthy, now.DesiredHealthy, now.DisruptionsAllowed, len(now.DisruptedPods)), err
}

// Mark makes a command end with the control plane at the latest.
func (s *Stage) Mark(cmd *exec.Cmd) { s.env.Mark(cmd) }

// On is the set of the nodes to be drained.
func (p *Play) On() map[string]bool {
	nodes := map[string]bool{}
	for _, n := range p.Nodes {
		nodes[n] = true
	}
	return nodes
}
