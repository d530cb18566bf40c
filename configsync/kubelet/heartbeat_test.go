// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/configsync"
)

// A beatingNode is a Node in memory whose Lease is renewed each period, if that is not 0.
type beatingNode struct {
	client *fake.FakeDynamicClient
	away   bool // the API server does not answer
	asked  int
	probe  *heartbeatProbe
}

func newBeatingNode(t *testing.T, lease time.Duration) *beatingNode {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "n1"}
	n := &beatingNode{client: fake.NewSimpleDynamicClient(scheme.Scheme,
		&corev1.Node{ObjectMeta: meta},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n1", Namespace: corev1.NamespaceNodeLease},
			Spec: coordinationv1.LeaseSpec{
				LeaseDurationSeconds: ptr.To(int32(lease.Seconds())), RenewTime: ptr.To(metav1.NowMicro()),
			}})}
	n.client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		n.asked++
		return n.away, nil, errors.New("connection refused")
	})
	n.probe = &heartbeatProbe{view: &nodeView{client: n.client, name: "n1"}}
	return n
}

func (n *beatingNode) renew(t *testing.T) {
	t.Helper()
	leases := n.client.Resource(leasesResource).Namespace(corev1.NamespaceNodeLease)
	lease, err := leases.Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lease.Object["spec"].(map[string]any)["renewTime"] = time.Now().UTC().Format(metav1.RFC3339Micro)
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (n *beatingNode) expectProbe(t *testing.T, what, want string, undecided bool) {
	t.Helper()
	got := ""
	err := n.probe.Check(t.Context())
	if err != nil {
		got = err.Error()
	}
	if want == "" && got != "" || !strings.Contains(got, want) || errors.Is(err, configsync.ErrUndecided) != undecided {
		t.Errorf("%s: %v, want %q, undecided %t", what, err, want, undecided)
	}
}

// L-CS-34: a kubelet has half a minute for its first heartbeat, and after that a minute, or as long as its Lease asks
// for, five minutes at most. While the API server is away no time counts.
func TestHeartbeatsAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newBeatingNode(t, 40*time.Second)
		n.expectProbe(t, "the first look", "no heartbeat yet", true)
		time.Sleep(31 * time.Second)
		n.expectProbe(t, "none within half a minute",
			"no heartbeat in the 31s since the kubelet was started; the last one: Lease 2000-01-01T00:00:00Z", false)
		n.renew(t)
		time.Sleep(2 * time.Second)
		n.expectProbe(t, "the first one", "", false)
		time.Sleep(59 * time.Second)
		n.expectProbe(t, "within a minute", "", false)
		time.Sleep(2 * time.Second)
		n.expectProbe(t, "none within a minute", "no heartbeat for 1m1s, want one within 1m0s", false)
		n.away = true
		time.Sleep(2 * time.Second)
		n.expectProbe(t, "the API server is away", "the API server did not give the Node: connection refused", true)
		asked := n.asked
		if _, err := n.probe.view.readPods(t.Context()); !errors.Is(err, configsync.ErrUndecided) || n.asked != asked {
			t.Errorf("the next probe of the round says %v after %d more calls, want the same without one", err, n.asked-asked)
		}
		time.Sleep(10 * time.Minute)
		n.expectProbe(t, "it is away for longer", "connection refused", true)
		n.away = false
		time.Sleep(2 * time.Second)
		n.expectProbe(t, "it is back, and the kubelet has not been heard yet", "", false)
		for d, want := range map[time.Duration]time.Duration{0: time.Minute, 40 * time.Second: time.Minute,
			2 * time.Minute: 3 * time.Minute, 24 * time.Hour: 5 * time.Minute} {
			lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To(int32(d.Seconds()))}}
			if got := heartbeatLimit(lease); got != want {
				t.Errorf("with a Lease of %s a heartbeat is awaited for %s, want %s", d, got, want)
			}
		}
	})
}
