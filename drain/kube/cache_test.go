// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/utils/ptr"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// bind binds a pod to a node as the scheduler does.
func (c *cluster) bind(t *testing.T, pod, node string) {
	t.Helper()
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	must(t, c.admin.CoreV1().Pods(c.namespace).Bind(t.Context(), binding, metav1.CreateOptions{}))
}

// gone deletes a pod as a kubelet does.
func (c *cluster) gone(t *testing.T, pod string) {
	t.Helper()
	must(t, c.admin.CoreV1().Pods(c.namespace).Delete(t.Context(), pod, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
}

// TestPodsAreIndexedByNode shows that the pods of a node are those that are bound to it now, and that each step is told.
func TestPodsAreIndexedByNode(t *testing.T) {
	c := newCluster(t)
	node := c.namespace
	cache := syncedCache(t, c.env.Config(), kube.CacheOptions{})
	var told seen
	defer cache.View().Watch(told.add)()
	c.runs(t, "bound", node)
	c.runs(t, "unbound", "")
	expect := func(want string) {
		t.Helper()
		eventually(t, func() string {
			if got := podNames(cache.View().Pods(node)); got != want || told.count(drain.Change{Node: node}) == 0 {
				return fmt.Sprintf("got %s and %d changes, want %s and a change", got, told.count(drain.Change{Node: node}), want)
			}
			return ""
		})
		told.forget()
	}
	expect("[bound]")
	c.bind(t, "unbound", node)
	expect("[bound unbound]")
	c.gone(t, "bound")
	expect("[unbound]")
	if pod := cache.View().Pod(c.namespace, "unbound"); pod == nil || cache.View().Pod(c.namespace, "bound") != nil || cache.View().Pod("x", "unbound") != nil {
		t.Errorf("got %v by name, want what is there", pod)
	}
}

// TestWholeViewOfCluster shows every kind that can be watched, and which are told.
func TestWholeViewOfCluster(t *testing.T) {
	c := newCluster(t)
	name := c.namespace
	cache := syncedCache(t, c.env.Config(), kube.CacheOptions{Volumes: true, DaemonSets: true})
	var told seen
	defer cache.View().Watch(told.add)()
	node, err := c.env.CreateNode(t.Context(), name)
	must(t, err)
	c.guards(t, "guard", "app", func(*policyv1.PodDisruptionBudgetStatus) {})
	set := c.hasVolume(t, name)
	view := cache.View()
	volumes, owners := view.(drain.VolumeCache), view.(drain.OwnerCache)
	guard := drain.Change{Budget: types.NamespacedName{Namespace: c.namespace, Name: "guard"}}
	eventually(t, func() string {
		budgets, attached := view.Budgets(c.namespace), volumes.Attachments(name)
		uid, _ := owners.DaemonSet(c.namespace, "set")
		for missing, there := range map[string]bool{
			"the node":             view.Node(name) != nil && view.Node(name).UID == node.UID && len(view.Nodes()) > 0,
			"the budget":           len(budgets) == 1 && budgets[0].Status.DisruptionsAllowed == 1,
			"the attachment":       len(attached) == 1 && attached[0].Name == name,
			"the volume":           volumes.Claim(c.namespace, "data") != nil && volumes.Volume(name) != nil,
			"the DaemonSet":        uid == set,
			"the budget's changes": told.count(guard) >= 2,
			"the node's changes":   told.count(drain.Change{Node: name}) >= 2,
		} {
			if !there {
				return missing + " is missing"
			}
		}
		return ""
	})
	if told.count(drain.Change{}) > 0 {
		t.Error("what is no change was told")
	}
	if len(view.Budgets("x")) > 0 || len(volumes.Attachments("x")) > 0 || volumes.Claim("x", "data") != nil || volumes.Volume("x") != nil {
		t.Error("got what belongs to others")
	}
	if _, ok := owners.DaemonSet(c.namespace, "other"); ok {
		t.Error("got a DaemonSet that doesn't exist")
	}
}

// hasVolume makes a claim, a volume that is attached to the node of the same name, and a DaemonSet, whose UID it returns.
func (c *cluster) hasVolume(t *testing.T, name string) types.UID {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	_, err := c.admin.CoreV1().PersistentVolumeClaims(c.namespace).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size}},
	}, metav1.CreateOptions{})
	must(t, err)
	csi := &corev1.CSIPersistentVolumeSource{Driver: "example.com", VolumeHandle: name}
	_, err = c.admin.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PersistentVolumeSpec{AccessModes: modes, Capacity: size, PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: csi}},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = c.admin.StorageV1().VolumeAttachments().Create(t.Context(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "example.com", NodeName: name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	labels := map[string]string{"set": "set"}
	set, err := c.admin.AppsV1().DaemonSets(c.namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "set"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
			},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	return set.UID
}

// TestNothingIsReadInSteadyState shows that evictions cost one request each, and that all else comes from watches. R-DR-02, R-DR-19.
func TestNothingIsReadInSteadyState(t *testing.T) {
	const pods = 20
	c := newCluster(t)
	var requests, watches atomic.Int32
	var listed, watched sync.Map
	config := through(c.env.Config(), func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if isWatch(r) {
			watches.Add(1)
			watched.Store(r.URL.Path, true)
		} else {
			requests.Add(1)
			listed.Store(r.URL.Path, true)
		}
		return next.RoundTrip(r)
	})
	node := c.namespace
	for i := range pods {
		c.runs(t, fmt.Sprintf("app-%d", i), node)
	}
	cache := syncedCache(t, config, kube.CacheOptions{Volumes: true, DaemonSets: true})
	client := newClient(t, config, kube.ClientOptions{})
	eventually(t, func() (missing string) { // a watch begins after the list by which its cache was synced
		listed.Range(func(path, _ any) bool {
			if _, ok := watched.Load(path); !ok {
				missing = fmt.Sprintf("no watch of %v", path)
			}
			return missing == ""
		})
		return missing
	})
	requestsBefore, watchesBefore := requests.Load(), watches.Load()
	for _, pod := range cache.View().Pods(node) {
		must(t, client.Evict(t.Context(), refTo(pod), nil))
		c.gone(t, pod.Name)
	}
	eventually(t, func() string {
		if left := cache.View().Pods(node); len(left) > 0 {
			return "left: " + podNames(left)
		}
		return ""
	})
	if got := requests.Load() - requestsBefore; got != pods {
		t.Errorf("got %d requests for %d pods, want one each", got, pods)
	}
	if got := watches.Load() - watchesBefore; got != 0 {
		t.Errorf("got %d watches more, want those that there were", got)
	}
}
