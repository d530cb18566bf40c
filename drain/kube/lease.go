// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/option"
)

// errNoLease is wrapped by the errors of a leaseKeeper about a node that has no Lease. None is made: there was no kubelet to stand
// in for.
var errNoLease = errors.New("the node has no Lease")

// renewAttempts is how often a renewal is tried that meets another writer.
const renewAttempts = 2

// A leaseKeeper remembers what it has seen of the Leases that it renews.
type leaseKeeper struct {
	caller

	mu   sync.Mutex
	seen map[string]time.Time // by node, the renew time at the end of the last call
}

var _ drain.LeaseKeeper = (*leaseKeeper)(nil)

// NewLeaseKeeper returns a [drain.LeaseKeeper] for the Leases by which kubelets show that they live. It keeps the holder and the
// duration that the kubelet wrote. Its methods may be called from several goroutines.
func NewLeaseKeeper(client kubernetes.Interface, o Options) (drain.LeaseKeeper, error) {
	check := option.For("drain/kube.NewLeaseKeeper", nil)
	checkCaller(check, client, o)
	if err := check.Err(); err != nil {
		return nil, err
	}
	return &leaseKeeper{caller: newCaller(client, o), seen: map[string]time.Time{}}, nil
}

// Renew sets the renew time of the node's Lease to now, or, where another clock is ahead, to a little later than it is. If the renew time
// is another one than at the end of the last call, somebody else lives and renews it, and it is left alone. A node without a
// Lease is an error.
func (k *leaseKeeper) Renew(ctx context.Context, node string) error {
	var err error
	for range renewAttempts {
		if err = k.renew(ctx, node); !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("renewing the Lease of node %q: %w", node, err)
	}
	return nil
}

func (k *leaseKeeper) renew(ctx context.Context, node string) error {
	ctx, cancel := k.within(ctx)
	defer cancel()
	leases := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		k.forget(node)
		return fmt.Errorf("%w: %w", errNoLease, err)
	}
	if err != nil {
		return err
	}
	found := renewTime(lease)
	if last, ok := k.last(node); ok && !last.Equal(found) {
		k.see(node, found)
		return nil
	}
	next := k.now().Truncate(time.Microsecond) // the API server keeps no more
	if !next.After(found) {
		next = found.Add(time.Microsecond)
	}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: next}
	if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return err
	}
	k.see(node, next)
	return nil
}

func (k *leaseKeeper) last(node string) (time.Time, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	last, ok := k.seen[node]
	return last, ok
}

func (k *leaseKeeper) see(node string, renewed time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen[node] = renewed
}

func (k *leaseKeeper) forget(node string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.seen, node)
}

func renewTime(lease *coordinationv1.Lease) time.Time {
	if lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}
