// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/nodeagent"
)

// be is the agent of one registration of the Node, from the first hold of its Lease on. It returns when ctx ends, when the Node is gone, and when
// another process is the agent.
func (p *Part) be(ctx context.Context, node *corev1.Node) error {
	if p.o.LeaseNamespace == "" {
		return p.follow(ctx)
	}
	held, taken, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var hold, take sync.Once
	m, err := p.member(ctx, node, func() { take.Do(func() { close(taken) }) })
	if err != nil {
		return fmt.Errorf("the Lease of node %q: %w", node.Name, err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return m.Run(ctx, func(work context.Context, _ identity.Epoch) error {
			hold.Do(func() { close(held) })
			<-work.Done()
			if ctx.Err() != nil {
				<-ended // the Lease is given back after that
			}
			return nil
		})
	})
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-taken:
			return errTaken
		}
	})
	g.Go(func() error {
		defer close(ended)
		select {
		case <-ctx.Done():
			return nil
		case <-held:
			return p.follow(ctx)
		}
	})
	return g.Wait()
}

// member is this process under the name of the node, which an admission policy can check. taken is called when another process has its Lease.
func (p *Part) member(ctx context.Context, node *corev1.Node, taken func()) (*identity.Member, error) {
	logger := klog.FromContext(ctx)
	fingerprint := identity.LocalFingerprint("/")
	fingerprint.NodeUID = string(node.UID)
	return identity.New(p.core.CoordinationV1().Leases(p.o.LeaseNamespace), identity.Spec{
		Namespace: p.o.LeaseNamespace, Name: identity.NodeName("", node.Name), Component: Component, Host: node.Name, Fingerprint: fingerprint,
		Owner: &metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
		Nodes: p.core.CoreV1().Nodes(), Node: node.Name, Timing: timing(p.o.Lease), LockFile: p.o.LockFile, OmitManagedFields: true,
	}, identity.Options{Metrics: identity.MemberMetrics{
		Held: func(held bool) { logger.Info("Lease changed", "lease", node.Name, "held", held) },
		Lost: func(why identity.LossReason) {
			if why == identity.Taken {
				taken()
			}
		},
	}})
}

// timing has an agent that is silent called lost after liveness.
func timing(liveness time.Duration) identity.Timing {
	return identity.Timing{
		Renew: max(time.Second, liveness/4), Jitter: 0.04, Hold: liveness * 3 / 4, Liveness: liveness, Duration: max(time.Hour, 3*liveness).Truncate(time.Second),
		Stop: min(liveness, callTimeout),
	}
}

// follow takes the attempts that the node's shadow orders, until ctx ends.
func (p *Part) follow(ctx context.Context) error {
	shadow, seen := kube.NewAgentShadow(kube.NewShadows(p.client), p.o.Node, nil), kube.NewOwnShadowCache(p.client, p.o.Node)
	changed := make(chan struct{}, 1)
	a, err := nodeagent.New(nodeagent.Options{
		Shadows: shadow, Disk: p.o.Disk, Updater: p.o.Updater, NodeUID: p.uid, Changed: changed,
		VerifyFor: p.o.VerifyFor, VerifyEvery: p.o.VerifyEvery, VerifyWithin: p.o.VerifyWithin, ApplyTimeout: p.o.ApplyTimeout,
		RevertBroken: p.o.RevertBroken, RetryMin: p.o.RetryMin, RetryMax: p.o.RetryMax,
	})
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Takes part in rollouts", "node", p.o.Node)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return seen.Run(ctx, func() {
			sh, _ := seen.Get(p.o.Node)
			shadow.See(sh)
			select {
			case changed <- struct{}{}:
			default: // it is about to look anyway
			}
		})
	})
	g.Go(func() error { return a.Run(ctx) })
	return g.Wait()
}

// uid is that of the Node as the API server has it now.
func (p *Part) uid(ctx context.Context) (string, error) {
	n, err := p.node(ctx)
	if err != nil {
		return "", err
	}
	if n.UID == "" {
		return "", errors.New("the Node has no UID")
	}
	return string(n.UID), nil
}
