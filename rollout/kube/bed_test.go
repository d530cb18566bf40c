// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/mutate"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A bed is the control plane with the definitions, and what the tests do there.
type bed struct {
	t       *testing.T
	env     *testenv.Env
	core    kubernetes.Interface
	client  dynamic.Interface
	shadows *kube.Shadows
	calls   *calls
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, env: shared.Env(t), calls: &calls{}}
	b.must(b.env.InstallCRDs(b.ctx(), v1alpha1.CRDs()...))
	config := b.env.Config()
	config.QPS = -1
	b.core = kubernetes.NewForConfigOrDie(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { b.calls.next = next; return b.calls })
	b.client = dynamic.NewForConfigOrDie(config)
	b.shadows = must1(kube.NewShadows(b.client))
	return b
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) ctx() context.Context {
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	b.t.Cleanup(cancel)
	return ctx
}

// eventually waits for something that another process does.
func (b *bed) eventually(what string, done func(ctx context.Context) error) {
	b.t.Helper()
	var last error
	patience := 2 * time.Minute
	if mutate.Running() { // what a mutant does not do, it does not do later
		patience = 20 * time.Second
	}
	ctx, stop := context.WithTimeout(b.t.Context(), patience)
	defer stop()
	err := testproc.Poll(patience, func() error {
		err := done(ctx)
		if err == nil || ctx.Err() == nil { // not that time is up
			last = err
		}
		return err
	})
	if err != nil {
		b.t.Fatalf("%s: not within %s, last: %v", what, patience, last)
	}
}

// now is a check that calls nothing.
func (b *bed) now(check func() error) func(context.Context) error {
	return func(context.Context) error { return check() }
}

// uid creates a Node and returns its UID: a shadow without one is for the garbage collector.
func (b *bed) uid(node string) string {
	b.t.Helper()
	n, err := b.env.CreateNode(b.ctx(), node)
	b.must(err)
	return string(n.UID)
}

// shadow creates a Node and its shadow, with a ledger that has reached the epoch, of which the agent has spoken.
func (b *bed) shadow(node string, epoch protocol.Attempt) *v1alpha1.NodeShadow {
	b.t.Helper()
	sh, err := b.shadows.Create(b.ctx(), protocol.NewShadow(node, b.uid(node), protocol.Ledger{Epoch: epoch}))
	b.must(err)
	return b.report(sh, protocol.Report{Known: true})
}

func (b *bed) report(sh *v1alpha1.NodeShadow, r protocol.Report) *v1alpha1.NodeShadow {
	b.t.Helper()
	sh, err := b.shadows.Report(b.ctx(), sh, with(sh, r), time.Unix(1e9, 0))
	b.must(err)
	return sh
}

// with is the status with another report.
func with(sh *v1alpha1.NodeShadow, r protocol.Report) v1alpha1.NodeShadowStatus {
	status := *sh.Status.DeepCopy()
	status.SetReport(r)
	return status
}

func (b *bed) order(sh *v1alpha1.NodeShadow, o protocol.Orders) *v1alpha1.NodeShadow {
	b.t.Helper()
	sh, err := b.shadows.Order(b.ctx(), sh, o)
	b.must(err)
	return sh
}

// user is a client with the rights of some rules, once they have taken effect: probe is allowed then.
func (b *bed) user(name string, rules []rbacv1.PolicyRule, probe func(ctx context.Context, c dynamic.Interface) error) dynamic.Interface {
	b.t.Helper()
	roles := b.core.RbacV1()
	_, err := roles.ClusterRoles().Create(b.ctx(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	b.must(err)
	_, err = roles.ClusterRoleBindings().Create(b.ctx(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}, metav1.CreateOptions{})
	b.must(err)
	client := b.as(b.env.User(b.t, name))
	b.eventually("the rights of "+name, func(ctx context.Context) error { return probe(ctx, client) })
	return client
}

func (b *bed) as(config *rest.Config) dynamic.Interface {
	b.t.Helper()
	client, err := dynamic.NewForConfig(config)
	b.must(err)
	return client
}

// calls are the requests that went out, as verb and path.
type calls struct {
	next http.RoundTripper
	mu   sync.Mutex
	all  []string
	lax  []string // writes that the server would prune instead of refusing them
	// after is called when a call has been answered.
	after func(call string)
}

func (c *calls) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	call := r.Method + " " + r.URL.Path
	c.all = append(c.all, call)
	if q := r.URL.Query(); r.Method != http.MethodGet && r.Method != http.MethodDelete && q.Get("fieldValidation")+q.Get("fieldManager") != "Strict"+"belay-rollout" {
		c.lax = append(c.lax, call)
	}
	after := c.after
	c.mu.Unlock()
	resp, err := c.next.RoundTrip(r)
	if after != nil {
		after(call)
	}
	return resp, err
}

// once calls f, once, after the first call that begins so from now on.
func (c *calls) once(begins string, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after = func(call string) {
		if !strings.HasPrefix(call, begins) {
			return
		}
		c.mu.Lock()
		c.after = nil
		c.mu.Unlock()
		f()
	}
}

// since is what was called in f.
func (c *calls) since(f func()) []string {
	c.mu.Lock()
	n := len(c.all)
	c.mu.Unlock()
	f()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[n:]
}

// must1 is what a constructor returns, which has all that it needs.
func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
