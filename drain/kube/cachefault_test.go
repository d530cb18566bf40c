// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/informers"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/internal/testenv"
)

// TestCacheComesBackFromALostWatch cuts the watches, changes the world meanwhile, and shows that the cache follows and tells, both where
// the server still has the events and where it has only the state.
func TestCacheComesBackFromALostWatch(t *testing.T) {
	for name, expired := range map[string]int{"events kept": 0, "events expired": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			node, elsewhere := c.namespace, c.namespace+"-2"
			var network aNetwork
			cache := syncedCache(t, network.through(c.env.Config()), kube.CacheOptions{})
			var told seen
			defer cache.View().Watch(told.add)()
			c.runs(t, "goes", node)
			c.runs(t, "moves", elsewhere)
			c.runs(t, "stays", node)
			eventually(t, func() string { return unlike(podNames(cache.View().Pods(node)), "[goes stays]") })
			network.fall()
			told.forget()
			c.gone(t, "goes")
			c.gone(t, "moves")
			c.runs(t, "moves", node)
			if got := podNames(cache.View().Pods(node)); got != "[goes stays]" {
				t.Errorf("without a watch: got %s, want it as it was", got)
			}
			network.rise(expired)
			eventually(t, func() string { return unlike(podNames(cache.View().Pods(node)), "[moves stays]") })
			eventually(t, func() string {
				if len(cache.View().Pods(elsewhere)) > 0 || told.count(drain.Change{Node: node}) == 0 || told.count(drain.Change{Node: elsewhere}) == 0 {
					return fmt.Sprintf("got %s elsewhere, and the changes %v, want a pod to leave one node for another", podNames(cache.View().Pods(elsewhere)), told.all())
				}
				return unlike(fmt.Sprint(cache.Check()), "<nil>")
			})
		})
	}
}

func unlike(got, want string) string {
	if got == want {
		return ""
	}
	return fmt.Sprintf("got %s, want %s", got, want)
}

// TestCacheComesBackFromADeadServer does the same with a server that is killed.
func TestCacheComesBackFromADeadServer(t *testing.T) {
	t.Parallel()
	env := testenv.Start(t, testenv.Options{})
	c := &cluster{env: env, admin: clientset(t, env.Config()), namespace: env.Namespace(t)}
	cache := syncedCache(t, env.Config(), kube.CacheOptions{})
	c.runs(t, "before", "node-1")
	eventually(t, func() string { return unlike(podNames(cache.View().Pods("node-1")), "[before]") })
	must(t, env.APIServer().Kill())
	late := startCache(t, env.Config(), kube.CacheOptions{})
	if err := late.Check(); err == nil || !strings.Contains(err.Error(), "informer of pods has not synced") {
		t.Errorf("got %v, want it to miss the pods", err)
	}
	if got := podNames(cache.View().Pods("node-1")); got != "[before]" || !cache.Synced() || late.Synced() {
		t.Errorf("without a server: got %s, want what there was", got)
	}
	must(t, env.APIServer().Start(t.Context()))
	c.runs(t, "after", "node-1")
	for _, cache := range []*kube.Cache{cache, late} {
		eventually(t, func() string { return unlike(podNames(cache.View().Pods("node-1")), "[after before]") })
		eventually(t, func() string { return unlike(fmt.Sprint(cache.Check()), "<nil>") })
	}
}

// TestAgentSeesItsNodeAlone runs a cache with the rights of a kubelet, to which the server shows one node and its pods, and no more than
// budgets besides. R-DR-10.
func TestAgentSeesItsNodeAlone(t *testing.T) {
	c := newCluster(t)
	mine, other := c.namespace, c.namespace+"-2"
	for _, node := range []string{mine, other} {
		_, err := c.env.CreateNode(t.Context(), node)
		must(t, err)
		c.runs(t, "on-"+node, node)
	}
	user := "system:node:" + mine
	c.allow(t, user, rbacv1.PolicyRule{Verbs: []string{"list", "watch"}, APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}})
	config := c.env.User(t, user, "system:nodes")
	var mu sync.Mutex
	var selected []string
	watched := through(config, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		selected = append(selected, r.URL.Path+" "+r.URL.Query().Get("fieldSelector"))
		return next.RoundTrip(r)
	})
	cache := syncedCache(t, watched, kube.CacheOptions{Node: mine})
	if len(cache.View().Nodes()) != 1 || cache.View().Node(mine) == nil || cache.View().Node(other) != nil {
		t.Errorf("got %d nodes, want %s alone", len(cache.View().Nodes()), mine)
	}
	if got := podNames(cache.View().Pods(mine)); got != "[on-"+mine+"]" || len(cache.View().Pods(other)) != 0 || cache.View().Pod(c.namespace, "on-"+other) != nil {
		t.Errorf("got %s, want its pods alone", got)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"/api/v1/pods spec.nodeName=" + mine, "/api/v1/nodes metadata.name=" + mine, "/apis/policy/v1/poddisruptionbudgets "} {
		if !slices.Contains(selected, want) {
			t.Errorf("got the requests %q, want %q among them", selected, want)
		}
	}
	whole := startCache(t, config, kube.CacheOptions{})
	eventually(t, func() string {
		text := fmt.Sprint(whole.Check())
		if !strings.Contains(text, "informer of pods has not synced") || !strings.Contains(text, "informer of nodes has not synced") {
			return fmt.Sprintf("a cache of the cluster: got %s, want it refused", text)
		}
		return ""
	})
}

// TestNarrowViewOfAWideFactory shows that a cache for one node shows no other, whatever the factory watches.
func TestNarrowViewOfAWideFactory(t *testing.T) {
	c := newCluster(t)
	mine, other := c.namespace, c.namespace+"-2"
	for _, node := range []string{mine, other} {
		_, err := c.env.CreateNode(t.Context(), node)
		must(t, err)
		c.runs(t, "on-"+node, node)
	}
	c.hasVolume(t, other)
	factory := informers.NewSharedInformerFactory(c.admin, 0)
	cache, err := kube.NewCache(factory, kube.CacheOptions{Node: mine, Volumes: true})
	must(t, err)
	if got := cache.View().Nodes(); len(got) != 0 {
		t.Errorf("before the start: got %v, want none", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	must(t, cache.WaitForSync(t.Context()))
	attachments := cache.View().(drain.VolumeCache).Attachments(other)
	if len(cache.View().Nodes()) != 1 || cache.View().Node(other) != nil || len(cache.View().Pods(other)) != 0 || cache.View().Pod(c.namespace, "on-"+other) != nil || len(attachments) != 0 {
		t.Errorf("got %d nodes, %d pods and %d attachments of another, want none", len(cache.View().Nodes()), len(cache.View().Pods(other)), len(attachments))
	}
	if cache.View().Pod(c.namespace, "on-"+mine) == nil || len(cache.View().Pods(mine)) != 1 {
		t.Error("its own pod is missing")
	}
}

// TestWaitForSyncSaysWhatIsMissing shows the errors of a cache that nobody has started, and that one of a factory that runs already works.
func TestWaitForSyncSaysWhatIsMissing(t *testing.T) {
	c := newCluster(t)
	factory := kube.NewFactory(c.admin, kube.CacheOptions{})
	cache, err := kube.NewCache(factory, kube.CacheOptions{})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = cache.WaitForSync(ctx)
	var lag *kube.InformerError
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &lag) || lag.Resource != "nodes" || lag.Synced {
		t.Errorf("got %v, want the deadline and the informer of nodes", err)
	}
	for _, resource := range []string{"nodes", "pods", "poddisruptionbudgets"} {
		if !strings.Contains(err.Error(), "informer of "+resource+" has not synced: not started") {
			t.Errorf("got %v, want it to name %s", err, resource)
		}
	}
	if err := cache.WaitForSync(t.Context()); !errors.Is(err, kube.ErrInformerNotStarted) {
		t.Errorf("without a deadline: got %v, want ErrInformerNotStarted", err)
	}
	started, stop := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer stop()
	factory.Start(started.Done())
	must(t, cache.WaitForSync(t.Context()))
	again, err := kube.NewCache(factory, kube.CacheOptions{})
	must(t, err)
	must(t, again.WaitForSync(t.Context()))
	if _, err := kube.NewCache(nil, kube.CacheOptions{}); err == nil || !strings.Contains(err.Error(), "drain/kube.NewCache: factory is required (see drain/kube.NewFactory") {
		t.Errorf("got %v, want it to miss the factory", err)
	}
}
