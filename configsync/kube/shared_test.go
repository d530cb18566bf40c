// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/informer"
	internalwatch "github.com/belayproject/belay/internal/watch"
)

// nodeConfig is one that wants version n of a config.
func nodeConfig(name string, n int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"source": map[string]any{
		"configMapRef": map[string]any{"namespace": "ns", "name": "cm", "uid": fmt.Sprint("u-", n), "key": "agent"},
	}}}}
	u.SetAPIVersion(v1alpha1.GroupVersion.String())
	u.SetKind(v1alpha1.NodeConfigKind)
	u.SetName(name)
	u.SetUID("a")
	u.SetGeneration(n)
	u.SetResourceVersion(fmt.Sprint(n))
	return u
}

// memoryClient is an API server in memory that has these objects.
func memoryClient(objects ...runtime.Object) *fake.FakeDynamicClient {
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{v1alpha1.NodeConfigsResource: "NodeConfigList"}, objects...)
}

// newInformer is what an embedder has.
func newInformer(client dynamic.Interface, only internalwatch.Selector) cache.SharedIndexInformer {
	return internalwatch.NewInformer(client, v1alpha1.NodeConfigsResource, metav1.NamespaceAll, cache.Indexers{}, only)
}

// countRequests counts requests of a kind since the last time.
func countRequests(client *fake.FakeDynamicClient, verb string) (n int) {
	for _, a := range client.Actions() {
		if a.GetVerb() == verb {
			n++
		}
	}
	client.ClearActions()
	return n
}

// awaitWatch waits for a watch of a client in memory, which does not show what changes between a list and the watch.
func awaitWatch(t *testing.T, client *fake.FakeDynamicClient) {
	t.Helper()
	eventually(t, "the informer watches", func() error {
		for _, a := range client.Actions() {
			if a.GetVerb() == "watch" {
				return nil
			}
		}
		return errors.New("it does not")
	})
}

// hears waits for a change.
func hears(ctx context.Context, t *testing.T, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-ctx.Done():
		t.Fatal("no change was heard of:", context.Cause(ctx))
	}
}

// TestSourceOverAnInformer: over an informer that the process runs, a source hears of each change without a watch of
// its own, and what the informer has shown is not read again. It hears of a NodeConfig that was not there at first as
// well.
func TestSourceOverAnInformer(t *testing.T) {
	ctx, stop := context.WithCancel(deadline(t))
	defer stop()
	server, own := memoryClient(nodeConfig("n", 1), nodeConfig("other", 1)), memoryClient(nodeConfig("n", 1))
	shared := newInformer(server, nil)
	go shared.RunWithContext(ctx)
	source, err := kube.NewNodeConfigSource(own, "n", kube.Options{NodeConfigs: shared})
	must(t, err)
	changed, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() { ended <- source.Watch(ctx, func() { changed <- struct{}{} }) }()
	wants := func(n int64, want error) {
		t.Helper()
		eventually(t, fmt.Sprint("version ", n), func() error {
			spec, err := source.Desired(ctx)
			switch {
			case !errors.Is(err, want):
				return fmt.Errorf("got %w, want %w", err, want)
			case want == nil && spec.Generation != n:
				return fmt.Errorf("got generation %d, want %d", spec.Generation, n)
			}
			return nil
		})
	}
	objects := server.Resource(v1alpha1.NodeConfigsResource)
	hears(ctx, t, changed)
	awaitWatch(t, server)
	wants(1, nil)
	own.ClearActions()
	_, err = objects.Update(ctx, nodeConfig("n", 2), metav1.UpdateOptions{})
	must(t, err)
	hears(ctx, t, changed)
	wants(2, nil)
	if n := countRequests(own, "get"); n != 0 {
		t.Errorf("the NodeConfig was read %d times, want what the informer has shown", n)
	}
	must(t, own.Resource(v1alpha1.NodeConfigsResource).Delete(ctx, "n", metav1.DeleteOptions{}))
	must(t, objects.Delete(ctx, "n", metav1.DeleteOptions{}))
	hears(ctx, t, changed)
	wants(0, configsync.ErrMissing)
	if n := countRequests(own, "watch"); n != 0 {
		t.Errorf("the source has begun %d watches, want none", n)
	}
	stop()
	must(t, <-ended)
}

// TestNodeConfigThatComesLater: a NodeConfig that could not be compared yet is compared when it is there, and an
// informer that drops its source is found then. It never counts as a NodeConfig without a source.
func TestNodeConfigThatComesLater(t *testing.T) {
	for name, drops := range map[string]bool{"whole": false, "without its source": true} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(deadline(t))
			defer stop()
			server := memoryClient()
			shared := newInformer(server, nil)
			if drops {
				must(t, shared.SetTransform(dropSpec))
			}
			go shared.RunWithContext(ctx)
			source, err := kube.NewNodeConfigSource(server, "n", kube.Options{NodeConfigs: shared})
			must(t, err)
			changed, ended := make(chan struct{}, 100), make(chan error, 1)
			go func() { ended <- source.Watch(ctx, func() { changed <- struct{}{} }) }()
			hears(ctx, t, changed)
			if _, err := source.Desired(ctx); !errors.Is(err, configsync.ErrMissing) {
				t.Errorf("got %v, want ErrMissing", err)
			}
			awaitWatch(t, server)
			_, err = server.Resource(v1alpha1.NodeConfigsResource).Create(ctx, nodeConfig("n", 1), metav1.CreateOptions{})
			must(t, err)
			hears(ctx, t, changed)
			spec, err := source.Desired(ctx)
			var wrong *kube.InformerError
			if !errors.As(err, &wrong) && (err != nil || spec == nil || spec.UID != "u-1") {
				t.Errorf("got %+v and %v, want the source of the NodeConfig", spec, err)
			}
			if drops {
				if err := <-ended; !errors.As(err, &wrong) {
					t.Errorf("the watch ended with %v, want an InformerError", err)
				}
				return
			}
			stop()
			must(t, <-ended)
		})
	}
}

// dropSpec is a transform that drops what is read.
func dropSpec(obj any) (any, error) {
	u := obj.(*unstructured.Unstructured).DeepCopy()
	delete(u.Object, "spec")
	return u, nil
}

// TestInformerThatCannotBeUsed: the error names the option and what is wrong within a second; the source has no answer,
// and an agent ends, by a planned stop.
func TestInformerThatCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct {
		make func(ctx context.Context, server dynamic.Interface) cache.SharedIndexInformer
		is   error
		says string
	}{
		"not started": {func(_ context.Context, server dynamic.Interface) cache.SharedIndexInformer {
			return newInformer(server, nil)
		}, informer.ErrNotStarted, "not started: start"},
		"stopped while it runs": {func(ctx context.Context, server dynamic.Interface) cache.SharedIndexInformer {
			i := newInformer(server, nil)
			short, stop := context.WithTimeout(ctx, 700*time.Millisecond)
			go func() { defer stop(); i.RunWithContext(short) }()
			return i
		}, informer.ErrStopped, "has stopped"},
		"transform": {func(ctx context.Context, server dynamic.Interface) cache.SharedIndexInformer {
			i := newInformer(server, nil)
			_ = i.SetTransform(dropSpec)
			go i.RunWithContext(ctx)
			return i
		}, nil, "spec is not what the server has: it drops a field"},
		"selects too little": {func(ctx context.Context, _ dynamic.Interface) cache.SharedIndexInformer {
			i := newInformer(memoryClient(nodeConfig("other", 1)), nil)
			go i.RunWithContext(ctx)
			return i
		}, nil, `not "n": it selects too little`},
		"typed": {func(ctx context.Context, server dynamic.Interface) cache.SharedIndexInformer {
			i := newInformer(server, nil)
			_ = i.SetTransform(func(obj any) (any, error) {
				typed := &v1alpha1.NodeConfig{}
				return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.(*unstructured.Unstructured).Object, typed)
			})
			go i.RunWithContext(ctx)
			return i
		}, nil, "give one of unstructured objects"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(deadline(t))
			defer stop()
			server := memoryClient(nodeConfig("n", 1))
			source, err := kube.NewNodeConfigSource(server, "n", kube.Options{NodeConfigs: c.make(ctx, server)})
			must(t, err)
			began := time.Now()
			wantInformerError(t, "Watch", source.Watch(ctx, func() {}), c.is, c.says)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %s, want about a second", took)
			}
			_, err = source.Desired(ctx)
			wantInformerError(t, "Desired", err, c.is, c.says)
			if !errors.Is(err, configsync.ErrUnreachable) {
				t.Errorf("Desired: got %v, want that it says nothing about the config", err)
			}

			disk := &configsynctest.Disk{}
			work := func(ctx context.Context, _ configsync.Active[agentConfig]) error { <-ctx.Done(); return nil }
			options := agentOptions(disk, work)
			options.Options.NodeConfigs = c.make(ctx, server)
			body, err := nodeConfig("n", 1).MarshalJSON()
			must(t, err)
			const format = `{"apiVersion":"belay.dev/v1alpha1","kind":"NodeConfigList","metadata":{},"items":[%s]}`
			list := fmt.Sprintf(format, body)
			wantInformerError(t, "RunAgent", kube.RunAgent(ctx, impostor(t, says(200, list)), options), c.is, c.says)
			if raw, err := disk.Get(ctx, "planned-restart"); err != nil {
				t.Errorf("the stop of the agent is not on record as planned: %q, %v", raw, err)
			}
		})
	}
	stopped := newInformer(memoryClient(), nil)
	over, stop := context.WithCancel(t.Context())
	stop()
	stopped.RunWithContext(over)
	_, err := kube.NewNodeConfigSource(memoryClient(), "n", kube.Options{NodeConfigs: stopped})
	wantInformerError(t, "a stopped informer", err, informer.ErrStopped, "has stopped")
	_, err = kube.NewNodeConfigSource(memoryClient(), "n", kube.Options{NodeConfigs: withoutStore{stopped}})
	wantInformerError(t, "an informer without a store", err, informer.ErrNoStore, "GetIndexer")
}

// withoutStore is an informer as the cache of a manager that watches single namespaces has it.
type withoutStore struct{ kube.Informer }

func (withoutStore) IsStopped() bool { return false }

func wantInformerError(t *testing.T, what string, err, is error, says string) {
	t.Helper()
	var wrong *kube.InformerError
	if !errors.As(err, &wrong) || wrong.Option != "Options.NodeConfigs" || is != nil && !errors.Is(err, is) {
		t.Errorf("%s: got %v, want an InformerError of Options.NodeConfigs that is %v", what, err, is)
		return
	}
	if !strings.Contains(err.Error(), says) {
		t.Errorf("%s: got %v, want that it says %q", what, err, says)
	}
}
