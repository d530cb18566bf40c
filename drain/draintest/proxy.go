// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
)

// A Proxy has a script for any client: on a real API server the same faults and the same log.
type Proxy struct {
	*Script

	client drain.Client
	leases drain.LeaseKeeper
}

var (
	_ drain.Client      = (*Proxy)(nil)
	_ drain.LeaseKeeper = (*Proxy)(nil)
)

// NewProxy returns a proxy before a client and, where it is not nil, a lease keeper. Its clock is the machine's. [WatchDropped] has no effect.
func NewProxy(client drain.Client, leases drain.LeaseKeeper) *Proxy {
	return &Proxy{Script: &Script{now: time.Now}, client: client, leases: leases}
}

// Evict implements [drain.Client].
func (p *Proxy) Evict(ctx context.Context, pod drain.PodRef, grace *int64) error {
	return p.write(ctx, Call{Verb: Evict, Object: pod.String(), UID: pod.UID, GracePeriodSeconds: grace}, func() error {
		return p.client.Evict(ctx, pod, grace)
	})
}

// Delete implements [drain.Client].
func (p *Proxy) Delete(ctx context.Context, pod drain.PodRef, grace *int64) error {
	return p.write(ctx, Call{Verb: Delete, Object: pod.String(), UID: pod.UID, GracePeriodSeconds: grace}, func() error {
		return p.client.Delete(ctx, pod, grace)
	})
}

// PatchNode implements [drain.Client].
func (p *Proxy) PatchNode(ctx context.Context, name string, patch []byte, status bool) (node *corev1.Node, err error) {
	err = p.write(ctx, Call{Verb: PatchNode, Object: name, Patch: string(patch), Status: status}, func() (err error) {
		node, err = p.client.PatchNode(ctx, name, patch, status)
		return err
	})
	if err != nil {
		return nil, err
	}
	return node, nil
}

// GetNode implements [drain.Client].
func (p *Proxy) GetNode(ctx context.Context, name string) (node *corev1.Node, err error) {
	err = p.call(ctx, Call{Verb: GetNode, Object: name}, func() (_ bool, err error) {
		node, err = p.client.GetNode(ctx, name)
		return false, err
	})
	if err != nil {
		return nil, err
	}
	return node, nil
}

// ListPods implements [drain.Client].
func (p *Proxy) ListPods(ctx context.Context, node string) (pods []*corev1.Pod, err error) {
	err = p.call(ctx, Call{Verb: ListPods, Object: node}, func() (_ bool, err error) {
		pods, err = p.client.ListPods(ctx, node)
		return false, err
	})
	if err != nil {
		return nil, err
	}
	return pods, nil
}

// Renew implements [drain.LeaseKeeper].
func (p *Proxy) Renew(ctx context.Context, node string) error {
	return p.call(ctx, Call{Verb: Renew, Object: node}, func() (bool, error) { return false, p.leases.Renew(ctx, node) })
}

func (p *Proxy) write(ctx context.Context, call Call, send func() error) error {
	return p.call(ctx, call, func() (bool, error) {
		err := send()
		return err == nil, err
	})
}
