// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// inBubble runs f with a cache over an API in memory, in a bubble that fails the test for any goroutine that is left behind.
func inBubble(t *testing.T, f func(t *testing.T, client kubernetes.Interface, cache *kube.Cache)) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		o := kube.CacheOptions{Volumes: true}
		factory := kube.NewFactory(client, o)
		cache, err := kube.NewCache(factory, o)
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		factory.Start(ctx.Done())
		must(t, cache.WaitForSync(t.Context()))
		synctest.Wait()
		f(t, client, cache)
		cancel()
		factory.Shutdown()
	})
}

// changesOf collects what is told while f runs. The bubble is at rest when it reads them.
func changesOf(cache *kube.Cache, f func()) []drain.Change {
	var told seen
	stop := cache.View().Watch(told.add)
	f()
	synctest.Wait()
	stop()
	var changes []drain.Change
	for change := range told.changes {
		changes = append(changes, change)
	}
	slices.SortFunc(changes, func(a, b drain.Change) int { return len(a.Node+a.Budget.Name) - len(b.Node+b.Budget.Name) })
	return changes
}

// TestChangesNameWhatHasChanged shows what is told of each kind of object: both nodes of what moves, and nothing of what was there.
func TestChangesNameWhatHasChanged(t *testing.T) {
	inBubble(t, func(t *testing.T, client kubernetes.Interface, cache *kube.Cache) {
		pods, ctx := client.CoreV1().Pods("ns"), t.Context()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: corev1.PodSpec{NodeName: "n1"}}
		attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: storagev1.VolumeAttachmentSpec{NodeName: "n1"}}
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "guard"}}
		one, two := drain.Change{Node: "n1"}, drain.Change{Node: "node2"}
		guard := drain.Change{Budget: types.NamespacedName{Namespace: "ns", Name: "guard"}}
		for _, c := range []struct {
			name string
			do   func() error
			want []drain.Change
		}{
			{"pod added", func() error { _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); return err }, []drain.Change{one}},
			{"pod moved", func() error {
				moved := pod.DeepCopy()
				moved.Spec.NodeName = "node2"
				_, err := pods.Update(ctx, moved, metav1.UpdateOptions{})
				return err
			}, []drain.Change{one, two}},
			{"pod deleted", func() error { return pods.Delete(ctx, "app", metav1.DeleteOptions{}) }, []drain.Change{two}},
			{"unbound pod", func() error {
				_, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "waits"}}, metav1.CreateOptions{})
				return err
			}, nil},
			{"node added", func() error {
				_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{})
				return err
			}, []drain.Change{one}},
			{"attached", func() error {
				_, err := client.StorageV1().VolumeAttachments().Create(ctx, attachment, metav1.CreateOptions{})
				return err
			}, []drain.Change{one}},
			{"budget added", func() error {
				_, err := client.PolicyV1().PodDisruptionBudgets("ns").Create(ctx, budget, metav1.CreateOptions{})
				return err
			}, []drain.Change{guard}},
			{"budget deleted", func() error {
				return client.PolicyV1().PodDisruptionBudgets("ns").Delete(ctx, "guard", metav1.DeleteOptions{})
			}, []drain.Change{guard}},
			{"claim added", func() error {
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
				_, err := client.CoreV1().PersistentVolumeClaims("ns").Create(ctx, claim, metav1.CreateOptions{})
				return err
			}, nil},
		} {
			if got := changesOf(cache, func() { must(t, c.do()) }); !slices.Equal(got, c.want) {
				t.Errorf("%s: got %v, want %v", c.name, got, c.want)
			}
		}
	})
}

// TestWatchersComeAndGo shows that each watcher hears of everything until it stops, and may stop, watch and look from within.
func TestWatchersComeAndGo(t *testing.T) {
	inBubble(t, func(t *testing.T, client kubernetes.Interface, cache *kube.Cache) {
		nodes := client.CoreV1().Nodes()
		add := func(name string) {
			_, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			must(t, err)
			synctest.Wait()
		}
		var always, once, later []string
		var stopOnce, stopLater func()
		stopAlways := cache.View().Watch(func(c drain.Change) {
			always = append(always, c.Node)
			if cache.View().Node(c.Node) == nil {
				t.Errorf("the cache doesn't have %q, which was told", c.Node)
			}
		})
		stopOnce = cache.View().Watch(func(c drain.Change) {
			once = append(once, c.Node)
			stopOnce()
			stopLater = cache.View().Watch(func(c drain.Change) { later = append(later, c.Node) })
		})
		add("a")
		add("b")
		stopLater()
		stopLater()
		add("c")
		stopAlways()
		add("d")
		for _, w := range []struct {
			name      string
			got, want []string
		}{{"always", always, []string{"a", "b", "c"}}, {"once", once, []string{"a"}}, {"later", later, []string{"b"}}} {
			if !slices.Equal(w.got, w.want) {
				t.Errorf("%s: got %q, want %q", w.name, w.got, w.want)
			}
		}
	})
}

// TestViewHasNoMoreThanIsWatched shows that nobody takes what isn't watched for what doesn't exist: a Drainer would take it for detached,
// or for an orphan.
func TestViewHasNoMoreThanIsWatched(t *testing.T) {
	for _, o := range []kube.CacheOptions{{}, {Volumes: true}, {DaemonSets: true}, {Volumes: true, DaemonSets: true}} {
		cache, err := kube.NewCache(kube.NewFactory(fake.NewClientset(), o), o)
		must(t, err)
		_, volumes := cache.View().(drain.VolumeCache)
		_, owners := cache.View().(drain.OwnerCache)
		if volumes != o.Volumes || owners != o.DaemonSets {
			t.Errorf("%+v: got volumes %t and owners %t", o, volumes, owners)
		}
	}
}
