// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	configkube "github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/restart"
	configv1alpha1 "github.com/belayproject/belay/configsync/v1alpha1"
)

// pool is the config of a node in this test.
type pool struct {
	Size int `json:"size"`
}

// addConfig adds an agent that keeps one node at its config, over the cache and the HTTP client of the manager.
func addConfig(ctx context.Context, mgr ctrl.Manager, node string, use func(context.Context, pool)) error {
	nodeConfigs, err := mgr.GetCache().GetInformer(ctx, newNodeConfig(node))
	if err != nil {
		return err
	}
	options := configkube.AgentOptions[pool]{
		Node: node, HTTP: mgr.GetHTTPClient(), Options: configkube.Options{NodeConfigs: nodeConfigs},
		Syncer: configsync.Options[pool]{
			Version: "v1", Key: "pool", Codec: configsync.YAML[pool](configsync.YAMLOptions{}),
			Default: func() pool { return pool{Size: 1} }, Store: &configsynctest.Disk{}, Restarter: restart.Exit{Code: 75},
		},
		Work: func(ctx context.Context, active configsync.Active[pool]) error {
			use(ctx, active.Config)
			return ctx.Err()
		},
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for { // where a service manager would start the process again
			if err := configkube.RunAgent(ctx, mgr.GetConfig(), options); restart.Code(err) != 75 {
				return err
			}
		}
	}))
}

func newNodeConfig(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(configv1alpha1.GroupVersion.WithKind(configv1alpha1.NodeConfigKind))
	u.SetName(name)
	return u
}

// TestConfigOverTheManagersCache brings a node to a config and then to another one, with one watch of NodeConfigs,
// which is the manager's, of the one object of the node.
func TestConfigOverTheManagersCache(t *testing.T) {
	b := newBed(t)
	b.must(configkube.Install(t.Context(), b.env.Config()))
	namespace := b.env.Namespace(t)
	const user = "config-manager"
	node := "n-" + namespace
	mgr := b.newManager(b.user(user), func(o *ctrl.Options) {
		o.Cache.ByObject = map[client.Object]cache.ByObject{
			newNodeConfig(node): {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, node)},
		}
	})
	used := make(chan int, 10)
	b.must(addConfig(t.Context(), mgr, node, func(ctx context.Context, p pool) {
		used <- p.Size
		<-ctx.Done()
	}))
	stop := b.start(mgr)
	wantUsed := func(want int) {
		t.Helper()
		select {
		case got := <-used:
			if got != want {
				t.Fatalf("the node uses size %d, want %d", got, want)
			}
		case <-t.Context().Done():
			t.Fatal("the node uses nothing")
		}
	}
	wantUsed(1)
	resource := b.objects.Resource(configv1alpha1.NodeConfigsResource)
	for size := 2; size <= 3; size++ {
		cm, err := b.core.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pool-", size)}, Immutable: ptr.To(true),
			Data: map[string]string{"pool": fmt.Sprintf("size: %d\n", size)},
		}, metav1.CreateOptions{})
		b.must(err)
		want := newNodeConfig(node)
		want.Object["spec"] = map[string]any{"source": map[string]any{"configMapRef": map[string]any{
			"namespace": namespace, "name": cm.Name, "uid": string(cm.UID), "key": "pool",
		}}}
		_, err = resource.Apply(t.Context(), node, want, metav1.ApplyOptions{FieldManager: "test", Force: true})
		b.must(err)
		wantUsed(size)
		b.eventually("the status", func(ctx context.Context) error {
			u, err := resource.Get(ctx, node, metav1.GetOptions{})
			if err != nil {
				return err
			}
			name, _, err := unstructured.NestedString(u.Object, "status", "active", "display")
			if err == nil && name != namespace+"/"+cm.Name {
				err = fmt.Errorf("the active config is %q", name)
			}
			return err
		})
	}
	stop()
	watches := b.watches(user)
	t.Logf("watches at the API server, by its audit log: %v", watches)
	if watches["nodeconfigs"] != 1 || watches["nodes"] != 0 || watches["configmaps"] != 0 {
		t.Errorf("watches %v, want one of NodeConfigs", watches)
	}
}
