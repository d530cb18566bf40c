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
// another process is the agent. A Lease that could not be renewed shuts no door: without the API server there is nothing behind it.
func (r *round) be(ctx context.Context, node *corev1.Node) error {
	defer r.door.set(false)
	if r.o.LeaseNamespace == "" {
		r.enter(ctx)
		<-ctx.Done()
		return nil
	}
	taken := make(chan struct{})
	var take sync.Once
	m, err := r.member(ctx, node, func() { take.Do(func() { close(taken) }) })
	if err != nil {
		return fmt.Errorf("the Lease of node %q: %w", node.Name, err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return m.Run(ctx, r.hold) })
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-taken:
			return errTaken
		}
	})
	return g.Wait()
}

// hold is the work of a member. Where the Run is to end, the Lease is given back only when nothing of the node is changed any more.
func (r *round) hold(ctx context.Context, _ identity.Epoch) error {
	r.enter(ctx)
	<-ctx.Done()
	select {
	case <-r.stopping:
		<-r.ended
	default:
	}
	return nil
}

// enter opens the door.
func (r *round) enter(ctx context.Context) {
	klog.FromContext(ctx).Info("Takes part in rollouts", "node", r.o.Node)
	r.door.set(true)
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

// follow takes the attempts that the node's shadow orders, until ctx ends. While the door is shut the agent has no shadow: it begins nothing, and goes on
// with what its record says has begun, such as the way back from a revision that cuts the node off.
func (r *round) follow(ctx context.Context) error {
	return kube.RunAgent(ctx, r.config, kube.AgentOptions{Node: r.o.Node, Guard: r.door.before, Agent: nodeagent.Options{
		Disk: r.o.Disk, Updater: r.o.Updater, NodeUID: r.uid, Changed: r.door.changed,
		VerifyFor: r.o.VerifyFor, VerifyEvery: r.o.VerifyEvery, VerifyWithin: r.o.VerifyWithin, ApplyTimeout: r.o.ApplyTimeout,
		RevertBroken: r.o.RevertBroken, RetryMin: r.o.RetryMin, RetryMax: r.o.RetryMax,
	}})
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
