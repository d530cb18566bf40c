// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// An embedder is a program with informers of its own, one for each kind.
type embedder struct {
	factory informers.SharedInformerFactory
	stop    context.CancelFunc
}

// embed returns an embedder on a client. It ends with the test.
func embed(t *testing.T, client kubernetes.Interface, options ...informers.SharedInformerOption) *embedder {
	t.Helper()
	e := &embedder{factory: informers.NewSharedInformerFactoryWithOptions(client, 0, options...)}
	ctx, stop := context.WithCancel(context.Background())
	e.stop = func() { stop(); e.factory.Shutdown() }
	t.Cleanup(e.stop)
	e.informers()
	e.factory.Start(ctx.Done())
	return e
}

// managed hides what an informer has besides the methods that a controller-runtime cache gives.
type managed struct {
	kube.Informer
	of cache.SharedIndexInformer
}

func (m managed) GetIndexer() cache.Indexer { return m.of.GetIndexer() }

func (e *embedder) informers() kube.Informers {
	core := e.factory.Core().V1()
	return kube.Informers{
		Pods: core.Pods().Informer(), Nodes: core.Nodes().Informer(), Budgets: e.factory.Policy().V1().PodDisruptionBudgets().Informer(),
		DaemonSets: e.factory.Apps().V1().DaemonSets().Informer(),
	}
}

// TestOneWatchOfEachKind shows that a Drainer over the informers of an embedder begins no watch of its own, and drains
// all the same.
func TestOneWatchOfEachKind(t *testing.T) {
	c := newCluster(t)
	node := c.nodeWithPods(t, "app")
	var mu sync.Mutex
	watches := map[string]int{}
	config := through(c.env.Config(), func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if isWatch(r) {
			mu.Lock()
			watches[path.Base(r.URL.Path)]++
			mu.Unlock()
		}
		return next.RoundTrip(r)
	})
	e := embed(t, clientset(t, config))
	core := e.informers()
	shared := e.factory.Core().V1().Pods().Informer()
	core.Pods = managed{core.Pods, shared}
	d, err := kube.Open(t.Context(), config, kube.OpenOptions{Informers: core})
	must(t, err)
	defer d.Close()
	if _, ok := d.View.(drain.OwnerCache); !ok {
		t.Errorf("got %T, want it to know the DaemonSets that it was given", d.View)
	}
	plan, err := d.Plan(t.Context(), drain.Policy{}, node)
	if err != nil || len(plan.Nodes[0].Pods) != 1 {
		t.Errorf("got %+v and error %v, want one pod in the plan", plan, err)
	}
	defer c.playKubelet(t, node)()
	set, err := d.Run(t.Context(), drain.Set{Groups: [][]string{{node}}, Request: evictAll("one-watch")}, nil)
	if err != nil || len(set.Nodes) != 1 || set.Nodes[0].Phase != drain.Drained {
		t.Errorf("got %+v and error %v, want the node Drained", set, err)
	}
	mu.Lock()
	defer mu.Unlock()
	want := map[string]int{"pods": 1, "nodes": 1, "poddisruptionbudgets": 1, "daemonsets": 1}
	if fmt.Sprint(watches) != fmt.Sprint(want) {
		t.Errorf("got the watches %v, want %v", watches, want)
	}
}

// nodeWithPods makes a Node, and pods on it with all that a drain reads.
func (c *cluster) nodeWithPods(t *testing.T, pods ...string) string {
	t.Helper()
	node := c.namespace
	_, err := c.env.CreateNode(t.Context(), node)
	must(t, err)
	for _, name := range pods {
		c.runs(t, name, node, func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: "r1", Controller: ptr.To(true)}}
			p.Finalizers = []string{"example.com/hold"}
			p.Spec.Tolerations = []corev1.Toleration{{Key: "example.com/key", Operator: corev1.TolerationOpExists}}
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		})
	}
	return node
}

// playKubelet ends the pods of a node that are to end, until stop is called.
func (c *cluster) playKubelet(t *testing.T, node string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	pods := c.admin.CoreV1().Pods(c.namespace)
	wg.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
			for i := 0; err == nil && i < len(list.Items); i++ {
				if p := &list.Items[i]; p.DeletionTimestamp != nil {
					p.Finalizers = nil
					_, _ = pods.Update(ctx, p, metav1.UpdateOptions{})
					_ = pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
				}
			}
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

func evictAll(maintenance string) drain.Request {
	return drain.Request{
		Holder: "test", Maintenance: maintenance, Mode: drain.Drain,
		Policy: drain.Policy{Unmanaged: drain.EvictPods, LocalData: drain.EvictPods, Settle: ptr.To(50 * time.Millisecond)},
	}
}

// dropping is a transform that changes pods.
func dropping(drop func(p *corev1.Pod)) informers.SharedInformerOption {
	return informers.WithTransform(func(obj any) (any, error) {
		if p, ok := obj.(*corev1.Pod); ok {
			drop(p)
		}
		return obj, nil
	})
}

// A badInformer is an informer of an embedder that cannot be used, and what the error says.
type badInformer struct {
	name, option, want string
	is                 error
	with               informers.SharedInformerOption
}

func badInformers() []badInformer {
	only := func(change func(*metav1.ListOptions)) informers.SharedInformerOption {
		return informers.WithTweakListOptions(change)
	}
	return append(badPodInformers(), []badInformer{
		{"taints", "Informers.Nodes", "spec.taints", kube.ErrFieldMissing, informers.WithTransform(func(obj any) (any, error) {
			if n, ok := obj.(*corev1.Node); ok {
				n.Spec.Taints = nil
			}
			return obj, nil
		})},
		{"budgets", "Informers.Budgets", "status", kube.ErrFieldMissing, informers.WithTransform(func(obj any) (any, error) {
			if b, ok := obj.(*policyv1.PodDisruptionBudget); ok {
				b.Status = policyv1.PodDisruptionBudgetStatus{}
			}
			return obj, nil
		})},
		{"type", "Informers.Pods", "want *v1.Pod", kube.ErrFieldMissing, informers.WithTransform(func(obj any) (any, error) {
			if p, ok := obj.(*corev1.Pod); ok {
				return &metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta}, nil
			}
			return obj, nil
		})},
		{"namespace", "Informers.Pods", "pods of the server", kube.ErrSelectsTooLittle, informers.WithNamespace("default")},
		{"label", "Informers.Nodes", "nodes of the server", kube.ErrSelectsTooLittle, only(func(o *metav1.ListOptions) { o.LabelSelector = "app=app" })},
		{"field", "Informers.Nodes", "nodes of the server", kube.ErrSelectsTooLittle, only(func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=other" })},
	}...)
}

func badPodInformers() []badInformer {
	return []badInformer{
		{"uid", "Informers.Pods", "metadata.uid", kube.ErrFieldMissing, dropping(func(p *corev1.Pod) { p.UID = "" })},
		{"version", "Informers.Pods", "metadata.resourceVersion", kube.ErrFieldMissing, dropping(func(p *corev1.Pod) { p.ResourceVersion = "" })},
		{"deletion", "Informers.Pods", "metadata.deletionTimestamp", kube.ErrFieldMissing, dropping(func(p *corev1.Pod) { p.DeletionTimestamp = nil })},
		{"owners", "Informers.Pods", "metadata.ownerReferences", kube.ErrFieldMissing, dropping(func(p *corev1.Pod) { p.OwnerReferences = nil })},
		{"labels", "Informers.Pods", "metadata.labels", kube.ErrFieldMissing, dropping(func(p *corev1.Pod) { p.Labels = nil })},
		{"finalizers", "Informers.Pods", "metadata.finalizers", kube.ErrFieldMissing, dropping(func(p *corev1.Pod) { p.Finalizers = nil })},
		{"node", "Informers.Pods", "spec.nodeName", kube.ErrFieldMissing, dropping(func(p *corev1.Pod) { p.Spec.NodeName = "" })},
		{"tolerations", "Informers.Pods", "spec.tolerations", kube.ErrFieldMissing, dropping(func(p *corev1.Pod) { p.Spec.Tolerations = nil })},
		{"volumes", "Informers.Pods", "spec.volumes", kube.ErrFieldMissing, dropping(func(p *corev1.Pod) { p.Spec.Volumes = nil })},
		{"grace", "Informers.Pods", "spec.terminationGracePeriodSeconds", kube.ErrFieldMissing, dropping(func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = nil })},
		{"phase", "Informers.Pods", "status.phase", kube.ErrFieldMissing, dropping(func(p *corev1.Pod) { p.Status.Phase = "" })},
		{"conditions", "Informers.Pods", "status.conditions", kube.ErrFieldMissing, dropping(func(p *corev1.Pod) { p.Status.Conditions = nil })},
	}
}

// TestInformersThatCannotBeUsed gives a Cache the informers of an embedder that drop a field or select too little. Each
// is a typed error within a second, which names the option and the field; no drain and no dry run relies on them; and
// no goroutine is left.
func TestInformersThatCannotBeUsed(t *testing.T) {
	c := newCluster(t)
	node := c.nodeWithPods(t, "app", "ending")
	c.guards(t, "guard", "app", func(*policyv1.PodDisruptionBudgetStatus) {})
	must(t, c.admin.CoreV1().Pods(c.namespace).Delete(t.Context(), "ending", metav1.DeleteOptions{}))
	for _, bad := range badInformers() {
		t.Run(bad.name, func(t *testing.T) {
			e := embed(t, c.admin, bad.with)
			e.factory.WaitForCacheSync(t.Context().Done())
			before := listeners()
			cached, err := kube.NewCacheFromInformers(c.admin, e.informers(), kube.CacheOptions{Node: node})
			must(t, err)
			begun := time.Now()
			err = cached.WaitForSync(t.Context())
			if took := time.Since(begun); took > atOnce {
				t.Errorf("the answer took %s, want a second at most", took)
			}
			wantInformerError(t, err, bad.option, bad.want, bad.is)
			d, err := drain.New(drain.Options{Cache: cached.View(), Client: newClient(t, c.env.Config(), kube.ClientOptions{})})
			must(t, err)
			var blind *drain.CacheError
			if plan, err := d.Plan(t.Context(), drain.Policy{}, node); !errors.As(err, &blind) {
				t.Errorf("the dry run: got %+v and error %v, want a CacheError", plan, err)
			}
			r := evictAll("bad")
			r.Node = node
			if st, _, err := d.ReconcileRequest(t.Context(), r); !errors.As(err, &blind) || st.Phase != drain.Pending {
				t.Errorf("a drain: got %+v and error %v, want a CacheError", st, err)
			}
			cached.Close()
			eventually(t, func() string {
				if n := listeners(); n > before {
					return fmt.Sprintf("%d handlers are left, there were %d", n, before)
				}
				return ""
			})
		})
	}
}

func wantInformerError(t *testing.T, err error, option, want string, is error) {
	t.Helper()
	var typed *kube.InformerError
	if !errors.As(err, &typed) || typed.Option != option || !errors.Is(err, is) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), option) {
		t.Errorf("got %v, want an InformerError of %s for %q that is %q", err, option, want, is)
	}
}

// listeners counts the goroutines of handlers.
func listeners() int {
	stacks := make([]byte, 16<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "(*processorListener).run(")
}

// atOnce is the second that an answer may take, and what a busy machine adds.
const atOnce = 6 * time.Second

// TestInformersThatDoNotRun gives a Cache the informers of an embedder that has not started them, or stops them.
func TestInformersThatDoNotRun(t *testing.T) {
	c := newCluster(t)
	node := c.nodeWithPods(t, "app")
	idle := &embedder{factory: informers.NewSharedInformerFactory(c.admin, 0)}
	begun := time.Now()
	_, err := kube.Open(t.Context(), c.env.Config(), kube.OpenOptions{Informers: idle.informers()})
	wantInformerError(t, err, "Informers.Nodes", "start the factory, or the manager", kube.ErrInformerNotStarted)
	if took := time.Since(begun); took > atOnce {
		t.Errorf("the answer took %s, want a second at most", took)
	}

	e := embed(t, c.admin)
	d, err := kube.Open(t.Context(), c.env.Config(), kube.OpenOptions{Informers: e.informers()})
	must(t, err)
	defer d.Close()
	if _, err := d.Plan(t.Context(), drain.Policy{}, node); err != nil {
		t.Errorf("over informers that run: got error %v", err)
	}
	c.runs(t, "debug", node)
	ended := make(chan error, 1)
	begins := make(chan struct{}, 1)
	go func() {
		_, err := d.Run(t.Context(), drain.Set{Groups: [][]string{{node}}, Request: evictAll("stops")}, func(drain.SetStatus) {
			select {
			case begins <- struct{}{}:
			default:
			}
		})
		ended <- err
	}()
	<-begins
	e.stop()
	select {
	case err := <-ended: // the informers stop one after the other: the first that is seen is named
		var stopped *kube.InformerError
		if !errors.As(err, &stopped) || !strings.HasPrefix(stopped.Option, "Informers.") {
			t.Fatalf("got %v, want an InformerError that names the informer", err)
		}
		wantInformerError(t, err, stopped.Option, "has stopped", drain.ErrCacheStopped)
	case <-time.After(atOnce):
		t.Errorf("a drain over informers that have stopped goes on after %s, want its end within a second", atOnce)
	}
	_, err = d.Plan(t.Context(), drain.Policy{}, node)
	wantInformerError(t, err, "Informers.Nodes", "has stopped", kube.ErrInformerStopped)
	_, err = kube.NewCacheFromInformers(c.admin, e.informers(), kube.CacheOptions{})
	wantInformerError(t, err, "Informers.Nodes", "has stopped", kube.ErrInformerStopped)
}

// TestStartedFactory shows that a Cache can be made of a factory that runs, and that one of the informers of an
// embedder is not used before it was compared with the server.
func TestStartedFactory(t *testing.T) {
	c := newCluster(t)
	node := c.nodeWithPods(t, "app")
	e := embed(t, c.admin)
	cached, err := kube.NewCache(e.factory, kube.CacheOptions{DaemonSets: true})
	must(t, err)
	must(t, cached.WaitForSync(t.Context()))
	if err := cached.Check(); err != nil || podNames(cached.View().Pods(node)) != "[app]" {
		t.Errorf("got the pods %s and error %v, want [app]", podNames(cached.View().Pods(node)), err)
	}
	other, err := kube.NewCacheFromInformers(c.admin, e.informers(), kube.CacheOptions{})
	must(t, err)
	if err := other.Check(); err == nil || !strings.Contains(err.Error(), "call WaitForSync") {
		t.Errorf("got error %v, want it to ask for WaitForSync", err)
	}
	must(t, other.WaitForSync(t.Context()))
	must(t, other.Check())
	other.Close()
	if err := other.Check(); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got error %v, want the cache closed", err)
	}
}
