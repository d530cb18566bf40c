// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/belayproject/belay/identity"
)

// lead is a controller while it has the Lease.
func (c *child) lead(ctx context.Context, config *rest.Config, p *plant) error {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if c.Member {
		return c.leadAsMember(ctx, core, p)
	}
	ended := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: c.Lease}, Client: core.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.Holder},
		},
		LeaseDuration: c.LeaseFor, RenewDeadline: c.LeaseFor * 3 / 4, RetryPeriod: c.LeaseFor / 8,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				c.tell(Leads, "")
				ended <- p.run(ctx, c)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	c.tell(Retired, "")
	return errors.Join(<-ended, fmt.Errorf("%q leads no more", c.Holder))
}

// leadAsMember is lead with the parts and the timing of the reference controller. A process that has lost its Lease asks for it again.
func (c *child) leadAsMember(ctx context.Context, core kubernetes.Interface, p *plant) error {
	fingerprint := identity.LocalFingerprint("/")
	fingerprint.PodUID = c.Holder // each process is a pod of its own: no lock shows that the one before is gone
	m, err := identity.New(core.CoordinationV1().Leases(metav1.NamespaceDefault), identity.Spec{
		Namespace: metav1.NamespaceDefault, Name: c.Lease, Component: "rollout-stage", Host: fingerprint.Host, Fingerprint: fingerprint,
		Timing: MemberTiming(c.LeaseFor), OnDuplicate: identity.WaitOnDuplicate,
	}, identity.Options{})
	if err != nil {
		return err
	}
	return m.Run(ctx, func(ctx context.Context, _ identity.Epoch) error {
		c.tell(Leads, "")
		return p.run(ctx, c)
	})
}

// LeaderOf is the [Task].Holder of the member that has the Lease; "" where none has.
func LeaderOf(l *coordinationv1.Lease) string {
	var f identity.Fingerprint
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" || json.Unmarshal([]byte(l.Annotations[identity.FingerprintAnnotation]), &f) != nil {
		return ""
	}
	return f.PodUID
}

// MemberTiming is that of the reference controller, for a leader that is waited for so long.
func MemberTiming(lease time.Duration) identity.Timing {
	return identity.Timing{
		Renew: max(time.Second, lease/8), Jitter: 0.04, Hold: lease * 2 / 3, Liveness: lease, Duration: max(lease, 10*time.Second).Truncate(time.Second),
		Stop: 10 * time.Second,
	}
}
