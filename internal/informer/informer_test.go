// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/informer"
	"github.com/belayproject/belay/internal/testproc"
)

// noStore is an informer as the multi-namespace cache of controller-runtime has it.
type noStore struct{ informer.Interface }

func byName(obj any) ([]string, error) { return []string{obj.(*corev1.Node).Name}, nil }

// An index can be added to an informer that runs already, and twice; each informer that can't be read is a typed error that names the option.
func TestIndexer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactory(fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}), 0)
	running := factory.Core().V1().Nodes().Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for range 2 {
		store, err := informer.Indexer("Nodes", running, cache.Indexers{"by-name": byName})
		if err != nil {
			t.Fatalf("a running informer: %v", err)
		}
		if found, err := store.ByIndex("by-name", "a"); err != nil || len(found) != 1 {
			t.Errorf("the new index has %d objects (%v), want the Node that was there before it", len(found), err)
		}
	}
	wantError(t, "nil", nil, informer.ErrMissing)
	wantError(t, "no store", noStore{running}, informer.ErrNoStore)
	cancel()
	factory.Shutdown()
	err := testproc.Poll(10*time.Second, func() error {
		if !running.IsStopped() {
			return errors.New("the informer did not stop")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, "stopped", running, informer.ErrStopped)
	if err := informer.CheckStopped("Nodes", running); !errors.Is(err, informer.ErrStopped) {
		t.Errorf("CheckStopped of a stopped informer: %v, want ErrStopped", err)
	}
}

func wantError(t *testing.T, name string, i informer.Interface, want error) {
	t.Helper()
	_, err := informer.Indexer("Informers.Nodes", i, nil)
	var typed *informer.Error
	if !errors.Is(err, want) || !errors.As(err, &typed) || typed.Option != "Informers.Nodes" {
		t.Errorf("%s: got %v, want an Error with option Informers.Nodes that is %v", name, err, want)
	}
}

// TestInformerInAStruct has an informer as factories of client-go give it since 0.37, in a struct that hides whether it
// has started.
func TestInformerInAStruct(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	bare := factory.Core().V1().Nodes().Informer()
	hidden := struct{ cache.SharedIndexInformer }{bare}
	for name, i := range map[string]informer.Interface{"bare": bare, "value": hidden, "pointer": &hidden} {
		if err := informer.CheckStarted("Nodes", i); !errors.Is(err, informer.ErrNotStarted) {
			t.Errorf("%s: got %v, want ErrNotStarted", name, err)
		}
		if err := informer.WatchRunning(t.Context(), "Nodes", i); !errors.Is(err, informer.ErrNotStarted) {
			t.Errorf("%s: WatchRunning returned %v, want ErrNotStarted", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := informer.CheckStarted("Nodes", &hidden); err != nil {
		t.Errorf("after its start: got %v, want none", err)
	}
}
