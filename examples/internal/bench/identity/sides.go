// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"

	"github.com/belayproject/belay/identity"
)

// component is that of every Lease here.
const component = "bench"

// A heart is one Lease to be kept.
type heart struct {
	client    kubernetes.Interface
	namespace string
	name      string
	renew     time.Duration
	lost      *atomic.Int64 // holds that ended while they should not have
}

// A side of a comparison.
type side struct {
	name string
	beat func(ctx context.Context, h heart) error // until ctx ends
}

// timing is what belongs to an interval of renewal, in the proportions of the presets.
func timing(renew time.Duration) identity.Timing {
	return identity.Timing{Renew: renew, Jitter: 0.04, Hold: 3 * renew, Liveness: 4 * renew, Duration: time.Hour, Stop: 10 * time.Second}
}

// ours is a Member as an agent on a node has it, with all that it knows of itself in the Lease.
func ours() side { return member("ours", func(*identity.Spec) {}) }

// slim is the same without the owners of fields.
func slim() side { return member("ours-omit", func(s *identity.Spec) { s.OmitManagedFields = true }) }

func member(name string, change func(*identity.Spec)) side {
	return side{name, func(ctx context.Context, h heart) error {
		spec := h.spec()
		change(&spec)
		m, err := identity.New(h.client.CoordinationV1().Leases(h.namespace), spec, identity.Options{
			Metrics: identity.MemberMetrics{Lost: func(identity.LossReason) { h.lost.Add(1) }},
		})
		if err != nil {
			return err
		}
		return m.Run(ctx, nil)
	}}
}

func (h heart) spec() identity.Spec {
	const id = "c8f5bf43-8f0c-4d8c-9d0a-1e2f3a4b5c6d" // as long as a real one
	return identity.Spec{
		Namespace: h.namespace, Name: h.name, Component: component, Host: h.name + ".example.com",
		Fingerprint: identity.Fingerprint{NodeUID: id, BootID: id, PodUID: id, MachineID: "0123456789abcdef0123456789abcdef"},
		Timing:      timing(h.renew), KeepOnStop: true,
	}
}

// helpers is the controller of k8s.io/component-helpers, which renews the Leases of kubelets and kube-apiservers. Its Lease holds no more than
// the holder and times; label adds the one by which views find it.
func helpers(label bool) side {
	return side{"component-helpers", func(ctx context.Context, h heart) error {
		var more lease.ProcessLeaseFunc
		if label {
			more = func(l *coordinationv1.Lease) error {
				metav1.SetMetaDataLabel(&l.ObjectMeta, identity.ComponentLabel, component)
				return nil
			}
		}
		lease.NewController(clock.RealClock{}, h.client, h.name+"_c8f5bf43-8f0c-4d8c-9d0a-1e2f3a4b5c6d", 3600, nil, h.renew, h.name, h.namespace, more).Run(ctx)
		return nil
	}}
}

// election is client-go's leader election, with one candidate for each Lease.
func election() side {
	return side{"leaderelection", func(ctx context.Context, h heart) error {
		leader, err := leaderelection.NewLeaderElector(h.election(10*h.renew, 8*h.renew, func() {}))
		if err != nil {
			return err
		}
		leader.Run(ctx)
		if ctx.Err() == nil {
			h.lost.Add(1)
		}
		return nil
	}}
}

func (h heart) election(duration, deadline time.Duration, leads func()) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name}, Client: h.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: h.name + "_" + fmt.Sprint(time.Now().UnixNano())},
		},
		LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: h.renew, Name: h.name,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { leads() }, OnStoppedLeading: func() {}},
	}
}
