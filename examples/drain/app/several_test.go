// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/internal/e2e"
)

// draining watches the nodes of the test, and tells how many of them were draining at once at most, and which have been drained.
type draining struct {
	mu   sync.Mutex
	now  map[string]bool
	most int
	done []string
}

func (d *draining) see(n *corev1.Node) {
	var mark struct {
		Holders []struct {
			Mode    drain.Mode
			Drained time.Time
		}
	}
	_ = json.Unmarshal([]byte(n.Annotations[drain.MarkAnnotation]), &mark)
	d.mu.Lock()
	defer d.mu.Unlock()
	drained := len(mark.Holders) > 0 && !mark.Holders[0].Drained.IsZero()
	if drained && !slices.Contains(d.done, n.Name) {
		d.done = append(d.done, n.Name)
	}
	// A node that waits for its turn is cordoned, and not draining.
	if d.now[n.Name] = len(mark.Holders) > 0 && mark.Holders[0].Mode == drain.Drain && !drained; !d.now[n.Name] {
		delete(d.now, n.Name)
	}
	d.most = max(d.most, len(d.now))
}

// observe begins the watch, which ends with the test.
func (w *world) observe(t *testing.T) *draining {
	t.Helper()
	d := &draining{now: map[string]bool{}}
	watcher, err := w.client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{LabelSelector: poolLabel + "=" + w.namespace})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range watcher.ResultChan() {
			if n, ok := e.Object.(*corev1.Node); ok && e.Type != watch.Deleted {
				d.see(n)
			}
		}
	}()
	t.Cleanup(func() {
		watcher.Stop()
		<-ended
	})
	return d
}

// lowest watches the pods of an app, and returns what tells how many were ready at the worst time.
func (w *world) lowest(t *testing.T, app string) func() int {
	t.Helper()
	pods := w.client.CoreV1().Pods(w.namespace)
	list, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		t.Fatal(err)
	}
	ready := map[string]bool{}
	see := func(p *corev1.Pod, gone bool) {
		ready[p.Name] = !gone && p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if !ready[p.Name] {
			delete(ready, p.Name)
		}
	}
	for i := range list.Items {
		see(&list.Items[i], false)
	}
	watcher, err := pods.Watch(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app, ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	least := make(chan int, 1)
	go func() {
		lowest := len(ready)
		for e := range watcher.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok {
				see(p, e.Type == watch.Deleted)
				lowest = min(lowest, len(ready))
			}
		}
		least <- lowest
	}()
	t.Cleanup(watcher.Stop)
	return func() int { watcher.Stop(); return <-least }
}

// R-DR-04, R-DR-02: of the nodes that a selector names no more are draining at any time than --max-nodes allows, and all are drained.
func TestSelectorKeepsMaxNodes(t *testing.T) {
	for _, c := range []struct {
		flag string
		most int
	}{{"--rate=20", 1}, {"--max-nodes=50%", 2}} {
		t.Run(strings.Trim(c.flag, "-%"), func(t *testing.T) {
			w := newWorld(t)
			old := func(n *corev1.Node) { n.Labels["age"] = "old" }
			var nodes []string
			for i := range 4 {
				nodes = append(nodes, w.node(t, fmt.Sprint(i), old))
			}
			w.app(t, "web", 8)
			w.budget(t, "web", 6, 2)
			spare := w.node(t, "spare")
			seen := w.observe(t)
			lowest := w.lowest(t, "web")
			p := w.drain(t, "--selector=age=old,"+poolLabel+"="+w.namespace, "--settle=0s", c.flag)
			p.ends(t, exitDone)
			for _, n := range nodes {
				w.heldBy(t, n, defaultHolder(t))
			}
			e2e.Eventually(t, settled, "all pods are on the node that stays", func() error {
				if got := len(w.pods(t, spare)); got != 8 {
					return fmt.Errorf("got %d, want 8", got)
				}
				return nil
			})
			if got := lowest(); got < 6 {
				t.Errorf("%d pods were healthy at the worst time, and the budget needs 6", got)
			}
			if got := w.requests(t, w.user)["create pods/eviction"]; got != 8 {
				t.Errorf("%d evictions were asked for, want 8: each pod moves once", got)
			}
			// The watch of the test may be behind the command, which has its answers from the API server.
			e2e.Eventually(t, settled, "the watch of the test tells of all nodes", func() error {
				seen.mu.Lock()
				defer seen.mu.Unlock()
				if len(seen.done) != 4 {
					return fmt.Errorf("%q were drained, want all 4", seen.done)
				}
				return nil
			})
			seen.mu.Lock()
			defer seen.mu.Unlock()
			if seen.most != c.most || len(seen.done) != 4 {
				t.Errorf("%d nodes were draining at once and %q were drained, want %d at most, reached once, and all 4", seen.most, seen.done, c.most)
			}
		})
	}
}

// Nothing is done to any node where one of them does not exist, or none is meant.
func TestNodesThatDoNotExist(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	for _, c := range []struct {
		want string
		args []string
	}{
		{`there is no node "nowhere", "neither"; nothing was done`, []string{n1, "nowhere", "neither"}},
		{`there is no node "nowhere"`, []string{"plan", "nowhere"}},
		{`no node matches --selector="pool=nowhere"`, []string{"--selector=pool=nowhere"}},
		{`there is no node "nowhere"`, []string{"release", "nowhere"}},
	} {
		p := w.drain(t, c.args...)
		p.ends(t, exitError)
		if !strings.Contains(p.errs.String(), c.want) {
			t.Errorf("%q: got no %q\n%s", c.args, c.want, p)
		}
	}
	w.asFound(t, n1, false)
	if got := w.requests(t, w.user)["patch nodes"]; got != 0 {
		t.Errorf("got %d writes to nodes, want none", got)
	}
}

// A right that is missing is named with the user, the verb and the resource, and is not waited for.
func TestMissingRights(t *testing.T) {
	w := newWorld(t)
	n1 := w.node(t, "1")
	w.bare(t, "tool", n1)
	rule := func(group, verbs string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: strings.Split(verbs, ",")}
	}
	look := []rbacv1.PolicyRule{rule("", "list,watch", "nodes"), rule("", "list,watch", "pods"), rule("policy", "list,watch", "poddisruptionbudgets"), rule("apps", "list,watch", "daemonsets")}
	for _, c := range []struct {
		name  string
		rules []rbacv1.PolicyRule
		code  int
		want  string
	}{
		{"nothing", nil, exitError, `cannot list resource "`}, // whichever is refused first
		{"no-nodes", look[1:], exitError, `cannot list resource "nodes"`},
		{"look", look, exitError, `cannot patch resource "nodes"`},
		{"cordon", append(slices.Clone(look), rule("", "patch", "nodes")), exitBlocked, "EvictionForbidden"},
	} {
		user := c.name + "-" + w.namespace
		w.grant(t, user, c.rules)
		p := start(t, n1, "--force", "--timeout=4s", "--settle=0s", "--kubeconfig="+w.login(t, user))
		p.ends(t, c.code)
		if said := p.out.String() + p.errs.String(); !strings.Contains(said, c.want) {
			t.Errorf("%s: got no %q\n%s", c.name, c.want, p)
		}
		if c.code == exitError {
			w.asFound(t, n1, false)
			if strings.Contains(p.out.String(), string("DeadlinePassed")) {
				t.Errorf("%s: waited for the time-out, want an end at once\n%s", c.name, p)
			}
		}
	}
	plan := start(t, "plan", n1, "--force", "--kubeconfig="+w.login(t, "look-"+w.namespace))
	plan.ends(t, exitDone)
	plan.says(t, "Every pod can leave. That is not proven of 1 pod: ", `cannot create resource "pods/eviction"`)
}

// grant gives a user the rights of rules in the whole cluster, and returns when the API server knows of them.
func (w *world) grant(t *testing.T, user string, rules []rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: user}
	if _, err := w.client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
	}
	if _, err := w.client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				e2e.Allowed(t, w.client, user, nil, authorizationv1.ResourceAttributes{Group: rule.APIGroups[0], Resource: resource, Verb: verb})
			}
		}
	}
}
