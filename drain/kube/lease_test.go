// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// lastHeard is when the kubelet of these tests was last heard of.
var lastHeard = metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC))

func (c *cluster) lease(t *testing.T, node string) *coordinationv1.Lease {
	t.Helper()
	leases := c.admin.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	got, err := leases.Get(t.Context(), node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		got, err = leases.Create(t.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: node},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: ptr.To(int32(40)), RenewTime: &lastHeard},
		}, metav1.CreateOptions{})
	}
	must(t, err)
	return got
}

// heard renews the Lease as the kubelet does.
func (c *cluster) heard(t *testing.T, node string, at time.Time) {
	t.Helper()
	lease := c.lease(t, node)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: at}
	_, err := c.admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).Update(t.Context(), lease, metav1.UpdateOptions{})
	must(t, err)
}

// keeper renews the Lease of a node by a clock that stands at *now.
func (c *cluster) keeper(t *testing.T, now *time.Time) drain.LeaseKeeper {
	t.Helper()
	keeper, err := kube.NewLeaseKeeper(c.admin, kube.Options{Now: func() time.Time { return *now }})
	must(t, err)
	return keeper
}

// TestRenewTimeGrows shows that each renewal is a later one, also by a clock that is behind or stands still, and that what else the kubelet
// wrote stays. R-DR-14.
func TestRenewTimeGrows(t *testing.T) {
	c := newCluster(t)
	now := lastHeard.Add(time.Minute + 7) // the server keeps microseconds
	keeper := c.keeper(t, &now)
	last := c.lease(t, c.namespace).Spec.RenewTime.Time
	for _, clock := range []time.Time{now, now.Add(-time.Hour), now.Add(-time.Hour), now.Add(time.Second)} {
		now = clock
		must(t, keeper.Renew(t.Context(), c.namespace))
		lease := c.lease(t, c.namespace)
		if !lease.Spec.RenewTime.After(last) {
			t.Errorf("at %s: got %s, want later than %s", clock, lease.Spec.RenewTime, last)
		}
		if *lease.Spec.HolderIdentity != c.namespace || *lease.Spec.LeaseDurationSeconds != 40 {
			t.Errorf("got %+v, want the holder and duration of the kubelet", lease.Spec)
		}
		last = lease.Spec.RenewTime.Time
	}
	if want := now.Truncate(time.Microsecond); !last.Equal(want) {
		t.Errorf("got %s, want the clock's %s", last, want)
	}
}

// TestLivingKubeletIsLeftAlone shows that a Lease that somebody else renews is not touched, until they stop. R-DR-14.
func TestLivingKubeletIsLeftAlone(t *testing.T) {
	c := newCluster(t)
	now := lastHeard.Add(time.Minute)
	keeper := c.keeper(t, &now)
	c.lease(t, c.namespace)
	must(t, keeper.Renew(t.Context(), c.namespace))
	for i := range 3 {
		its := now.Add(time.Duration(i+1) * time.Second)
		c.heard(t, c.namespace, its)
		now = its.Add(time.Minute)
		must(t, keeper.Renew(t.Context(), c.namespace))
		if got := c.lease(t, c.namespace).Spec.RenewTime; !got.Time.Equal(its) {
			t.Errorf("got %s, want the kubelet's %s", got, its)
		}
	}
	must(t, keeper.Renew(t.Context(), c.namespace))
	if got := c.lease(t, c.namespace).Spec.RenewTime; !got.Time.Equal(now) {
		t.Errorf("when the kubelet has stopped: got %s, want %s", got, now)
	}
}

// TestKubeletComesInBetween shows that a renewal between read and write is not overwritten.
func TestKubeletComesInBetween(t *testing.T) {
	c := newCluster(t)
	now := lastHeard.Add(time.Minute)
	its, armed := now.Add(time.Second), false
	config := through(c.env.Config(), func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if armed && r.Method == http.MethodPut {
			armed = false
			c.heard(t, c.namespace, its)
		}
		return next.RoundTrip(r)
	})
	keeper, err := kube.NewLeaseKeeper(clientset(t, config), kube.Options{Now: func() time.Time { return now }})
	must(t, err)
	c.lease(t, c.namespace)
	must(t, keeper.Renew(t.Context(), c.namespace))
	now, armed = its.Add(time.Minute), true
	must(t, keeper.Renew(t.Context(), c.namespace))
	if got := c.lease(t, c.namespace).Spec.RenewTime; armed || !got.Time.Equal(its) {
		t.Errorf("got %s, want the kubelet's %s", got, its)
	}
}

// TestNoLeaseIsMade shows that a node that never had a kubelet is not made to look alive.
func TestNoLeaseIsMade(t *testing.T) {
	c := newCluster(t)
	now := lastHeard.Time
	err := c.keeper(t, &now).Renew(t.Context(), "never")
	if !errors.Is(err, kube.ErrNoLease) || !strings.Contains(err.Error(), `"never"`) {
		t.Errorf("got %v, want %v for the node", err, kube.ErrNoLease)
	}
	if _, err := c.admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "never", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want no Lease", err)
	}
	if _, err := kube.NewLeaseKeeper(nil, kube.Options{}); err == nil || !strings.Contains(err.Error(), "drain/kube.NewLeaseKeeper: client is required (") {
		t.Errorf("got %v, want it to miss the client", err)
	}
	if _, err := kube.NewLeaseKeeper(c.admin, kube.Options{Timeout: -1}); err == nil || !strings.Contains(err.Error(), "Timeout must not be negative") {
		t.Errorf("got %v, want it to refuse the timeout", err)
	}
}
