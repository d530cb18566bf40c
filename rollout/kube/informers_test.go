// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/informer"
	"github.com/belayproject/belay/internal/watch"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// An informer of a kind of this package that drops a field or selects too little ends RunController as well.
func TestRunControllerOverOwnKindsThatShowTooLittle(t *testing.T) {
	b := newBed(t)
	b.readyNode("own-0", "own")
	b.rollout("own", 1)
	for name, c := range map[string]struct {
		only watch.Selector
		drop cache.TransformFunc
		want string
	}{
		"transform": {nil, func(obj any) (any, error) {
			obj.(*unstructured.Unstructured).SetGeneration(0)
			return obj, nil
		}, "metadata.generation is not what the server has: its transform drops a field"},
		"selector": {func(o *metav1.ListOptions) { o.LabelSelector = "no=rollout" }, nil, "rollouts of the server, not"},
	} {
		t.Run(name, func(t *testing.T) {
			i := watch.NewInformer(b.client, v1alpha1.RolloutsResource, metav1.NamespaceAll, cache.Indexers{}, c.only)
			if c.drop != nil {
				b.must(i.SetTransform(c.drop))
			}
			ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
			defer stop()
			done := make(chan struct{})
			defer func() { stop(); <-done }()
			go func() { defer close(done); i.RunWithContext(ctx) }()
			err := kube.RunController(ctx, b.env.Config(), kube.ControllerOptions{
				Domain: "own", CachesOptions: kube.CachesOptions{Informers: kube.Informers{Rollouts: i}},
			})
			var typed *kube.InformerError
			if !errors.As(err, &typed) || typed.Option != "Informers.Rollouts" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("RunController returned %v, want an InformerError of Informers.Rollouts that says %q", err, c.want)
			}
		})
	}
}

// A status that a newer version has written, with fields that this one does not know, is compared as it is.
func TestObjectsOfANewerVersionAreCompared(t *testing.T) {
	of := func(deep string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{
			"status": map[string]any{"progress": map[string]any{"ofANewerVersion": []any{deep}}},
		}}
		u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind))
		u.SetName("newer")
		return u
	}
	for _, shown := range []string{"a", "b"} {
		store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		if err := store.Add(of(shown)); err != nil {
			t.Fatal(err)
		}
		wrong, err := informer.Sample{
			Resource: "rollouts", Store: store, AnyType: true, Fields: kube.FieldsRead,
			List: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
				return &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*of("a")}}, nil
			},
		}.Compare(t.Context())
		if err != nil || errors.Is(wrong, informer.ErrFieldMissing) != (shown != "a") {
			t.Errorf("of an informer that shows %q, and a server that has \"a\", Compare says %v (%v)", shown, wrong, err)
		}
	}
}

// The finalizers of others stay also where the informer of an embedder drops all, and a deleted Rollout goes.
func TestFinalizersOfOthersStay(t *testing.T) {
	const others = "example.com/hold"
	b := newBed(t)
	b.rollout("holds", 1)
	api := b.client.Resource(v1alpha1.RolloutsResource)
	patch := func(body string) {
		t.Helper()
		_, err := api.Patch(b.ctx(), "holds", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		b.must(err)
	}
	patch(`{"metadata":{"finalizers":["` + others + `"]}}`)
	var seen *v1alpha1.Rollout
	look := func() {
		t.Helper()
		u := must1(api.Get(b.ctx(), "holds", metav1.GetOptions{}))
		seen = &v1alpha1.Rollout{}
		b.must(apiruntime.DefaultUnstructuredConverter.FromUnstructured(u.Object, seen))
		seen.Finalizers = nil
	}
	look()
	all := must1(kube.NewRollouts(b.client, kube.RolloutsOptions{
		Domain: "holds", List: func() []*v1alpha1.Rollout { return []*v1alpha1.Rollout{seen} },
		Revision: func(string) (*v1alpha1.Revision, bool) { return nil, false },
	}))
	read := func() controller.Rollout {
		t.Helper()
		list := must1(all.List(b.ctx()))
		if len(list) != 1 {
			t.Fatalf("there are %d Rollouts, want 1", len(list))
		}
		return list[0]
	}
	for range 2 { // the second sees again that there are none
		asked := rollout.Decisions{Reason: controller.ReasonInvalid, Message: "as a test wants"}
		_, _, err := all.Store(b.ctx(), read(), asked)
		b.must(err)
		got := must1(api.Get(b.ctx(), "holds", metav1.GetOptions{})).GetFinalizers()
		if len(got) != 2 || got[0] != others {
			t.Fatalf("the finalizers are %q, want that of another one and its own", got)
		}
		look()
	}
	b.must(api.Delete(b.ctx(), "holds", metav1.DeleteOptions{}))
	look()
	b.must(all.Finish(b.ctx(), read()))
	if got := must1(api.Get(b.ctx(), "holds", metav1.GetOptions{})).GetFinalizers(); len(got) != 1 || got[0] != others {
		t.Fatalf("the finalizers are %q after Finish, want that of another one", got)
	}
	patch(`{"metadata":{"finalizers":null}}`)
	b.must(all.Finish(b.ctx(), read())) // it is gone
}

// neverStarted is an informer that its owner has not started, as one says since client-go 0.35.
type neverStarted struct{ kube.Informer }

func (neverStarted) HasStarted() bool { return false }
func (neverStarted) HasSynced() bool  { return false }
func (n neverStarted) GetIndexer() cache.Indexer {
	return n.Informer.(cache.SharedIndexInformer).GetIndexer()
}

// An agent over an informer that its owner does not start ends with an error that says so: it would see no shadow.
func TestRunAgentOverAnInformerThatIsNotStarted(t *testing.T) {
	b := newBed(t)
	i := watch.NewInformer(b.client, v1alpha1.NodeShadowsResource, metav1.NamespaceAll, cache.Indexers{}, nil)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	err := kube.RunAgent(ctx, b.env.Config(), kube.AgentOptions{
		Node: "never", Shadows: neverStarted{i},
		Agent: nodeagent.Options{Disk: &machine{}, Updater: firmware{filepath.Join(t.TempDir(), "firmware")}},
	})
	var typed *kube.InformerError
	if !errors.As(err, &typed) || typed.Option != "AgentOptions.Shadows" || ctx.Err() != nil {
		t.Errorf("RunAgent returned %v, want within seconds an InformerError of AgentOptions.Shadows", err)
	}
}
