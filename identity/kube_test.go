// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
)

// serverPatience bounds each wait for the real server.
const serverPatience = time.Minute

// A cluster is the real server with a namespace for one test, and a user who may do what a Member needs and nothing else.
type cluster struct {
	*testing.T
	admin     kubernetes.Interface
	member    *rest.Config
	namespace string
	lock      string // of the children
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return clusterOn(t, shared.Env(t), "get", "create", "update", "delete")
}

// clusterOn makes a namespace of a control plane, and a user with these rights on Leases.
func clusterOn(t *testing.T, env *testenv.Env, verbs ...string) *cluster {
	t.Helper()
	c := &cluster{T: t, admin: kubernetes.NewForConfigOrDie(env.Config()), namespace: env.Namespace(t)}
	user := "member-" + c.namespace
	c.member = env.User(t, user, audited)
	_, err := c.admin.RbacV1().Roles(c.namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "member"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: verbs}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.admin.RbacV1().RoleBindings(c.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "member"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "member"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) leases() coordinationclient.LeaseInterface {
	return c.admin.CoordinationV1().Leases(c.namespace)
}

func (c *cluster) get(name string) *coordinationv1.Lease {
	c.Helper()
	l, err := c.leases().Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return l
}

// eventually waits until done returns the empty string, which otherwise says what is missing.
func (c *cluster) eventually(done func() string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), serverPatience)
	defer cancel()
	pace := testproc.NewPace()
	for {
		missing := done()
		if missing == "" {
			return
		}
		select {
		case <-ctx.Done():
			c.Fatalf("after %s: %s", serverPatience, missing)
		case <-pace.Next():
		}
	}
}

// A wire notes when requests are sent, by method.
type wire struct {
	next http.RoundTripper
	mu   sync.Mutex
	sent map[string][]time.Time
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.sent[r.Method] = append(w.sent[r.Method], time.Now())
	w.mu.Unlock()
	return w.next.RoundTrip(r)
}

func (w *wire) times(method string) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent[method])
}

func (w *wire) count(method string) int { return len(w.times(method)) }

// A realProcess is one with a Member of the real server.
type realProcess struct {
	c      *cluster
	member *identity.Member
	wire   *wire
	cancel context.CancelFunc
	done   chan error
}

// fast is the shortest timing that a loaded machine keeps up with.
func fast() identity.Timing {
	return identity.Timing{Renew: time.Second, Hold: 18 * time.Second, Liveness: 20 * time.Second, Duration: 20 * time.Second, Stop: 10 * time.Second}
}

func (c *cluster) start(spec identity.Spec) *realProcess {
	c.Helper()
	p := &realProcess{c: c, wire: &wire{sent: map[string][]time.Time{}}, done: make(chan error, 1)}
	config := rest.CopyConfig(c.member)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		p.wire.next = next
		return p.wire
	})
	spec.Namespace = c.namespace
	if spec.Timing == (identity.Timing{}) {
		spec.Timing = fast()
	}
	var err error
	p.member, err = identity.New(kubernetes.NewForConfigOrDie(config).CoordinationV1().Leases(c.namespace), spec, identity.Options{})
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.Context())
	p.cancel = cancel
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		p.done <- p.member.Run(ctx, nil)
	}()
	c.Cleanup(func() {
		cancel()
		<-gone
	})
	return p
}

func (p *realProcess) holds() identity.Epoch {
	p.c.Helper()
	p.c.eventually(func() string {
		if _, held := p.member.Epoch(); !held {
			return fmt.Sprintf("the Lease is not held: %+v", p.member.Status())
		}
		return ""
	})
	e, _ := p.member.Epoch()
	return e
}

// TestMembersOnTheRealServer is R-ID-01, R-ID-02, R-ID-04 and R-ID-05: with the rights on Leases alone members of hosts of any kind get
// theirs, and a selector returns those and no other.
func TestMembersOnTheRealServer(t *testing.T) {
	c := newCluster(t)
	_, err := c.leases().Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "leader"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("x")},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[string]bool{"h": true, strings.Repeat("h", 63): true, strings.Repeat("h", 64): true, strings.Repeat("h", 253): true, "Upper_Case": true, "a\xffb": true}
	for host := range hosts {
		spec := goodSpec(host)
		spec.Name = identity.Name("m", spec.Component, host)
		c.start(spec).holds()
	}
	all, err := c.leases().List(t.Context(), metav1.ListOptions{LabelSelector: identity.ComponentLabel + "=test"})
	if err != nil || len(all.Items) != len(hosts) {
		t.Fatalf("R-ID-05: the selector returns %d Leases, %v; want %d", len(all.Items), err, len(hosts))
	}
	holders := map[string]bool{}
	for _, l := range all.Items {
		holders[*l.Spec.HolderIdentity] = true
		host := l.Annotations[identity.HostAnnotation]
		if !hosts[host] && host != `"a\xffb"` {
			t.Errorf("R-ID-04: host %q", host)
		}
		if label := l.Labels[identity.HostLabel]; label != "" && label != host || label == "" && len(host) < 64 && hosts[host] {
			t.Errorf("R-ID-04: host %q has label %q", host, label)
		}
	}
	if len(holders) != len(hosts) {
		t.Errorf("R-ID-01: %d holders of %d members", len(holders), len(hosts))
	}
}

// TestRenewalsOnTheRealServer is R-ID-21: one PUT in each interval and nothing else on the wire. What others have written stays, and so
// does the record of who owns which field, unless it is not wanted.
func TestRenewalsOnTheRealServer(t *testing.T) {
	for _, omit := range []bool{false, true} {
		t.Run(fmt.Sprintf("omit=%v", omit), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			spec := goodSpec("h")
			spec.OmitManagedFields = omit
			spec.Timing = fast()
			spec.Timing.Renew = 3 * time.Second // so much may a request take
			p := c.start(spec)
			p.holds()
			const first = 1 // the PUT that writes the epoch follows the POST at once
			c.eventually(func() string {
				if n := p.wire.count(http.MethodPut); n < first+4 {
					return fmt.Sprintf("%d PUTs, want the epoch and four renewals", n)
				}
				return ""
			})
			// A member counts from before it asks its client to send: the first of these may have left it late, and no other early.
			puts := p.wire.times(http.MethodPut)[first:]
			if took, least := puts[3].Sub(puts[0]), 3*spec.Timing.Renew-time.Second; took < least {
				t.Errorf("R-ID-21: four renewals, each %v, were sent within %v, want %v or more", spec.Timing.Renew, took, least)
			}
			if gets, posts := p.wire.count(http.MethodGet), p.wire.count(http.MethodPost); gets != 1 || posts != 1 {
				t.Errorf("R-ID-21: %d GET and %d POST, want one of each at the start", gets, posts)
			}
			if fields := c.get(name).ManagedFields; (len(fields) == 0) != omit {
				t.Errorf("managed fields %v, want none: %v", fields, omit)
			}
		})
	}
}
