// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"io/fs"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	configv1alpha1 "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/kube"
)

// node registers a Node, as a kubelet does.
func (b *bed) node(name, providerID string) *corev1.Node {
	b.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	n, err := b.core.CoreV1().Nodes().Create(b.ctx(), n, metav1.CreateOptions{})
	b.must(err)
	return n
}

// R-MA-02: Nodes that no watch shows yet are found on the server itself. One that was registered anew is not removed for the one that was seen.
func TestNodesThatNoWatchShows(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	unwatched, err := kube.NewNodes(b.core, informers.NewSharedInformerFactory(b.core, 0).Core().V1().Nodes().Informer(), nil)
	b.must(err)
	token := b.namespace + "-1"
	n := b.node("node-"+token, "memory:///z/"+token)
	b.node("other-"+token, "memory:///z/other-"+token)
	found, err := unwatched.Live(b.ctx(), token)
	if err != nil || len(found) != 1 || found[0].UID != string(n.UID) {
		t.Fatalf("R-MA-02: the server has %+v, %v, want the Node %s", found, err, n.UID)
	}
	b.must(b.core.CoreV1().Nodes().Delete(b.ctx(), n.Name, metav1.DeleteOptions{}))
	again := b.node(n.Name, n.Spec.ProviderID)
	if err := unwatched.Remove(b.ctx(), found[0].NodeRef); !errors.Is(err, fs.ErrExist) {
		t.Errorf("R-MA-02: removing a Node that was registered anew: %v, want fs.ErrExist", err)
	}
	b.must(unwatched.Remove(b.ctx(), machine.NodeRef{Name: again.Name, UID: string(again.UID)}))
	b.must(unwatched.Remove(b.ctx(), machine.NodeRef{Name: again.Name, UID: string(again.UID)}))
	if found, err = unwatched.Live(b.ctx(), token); err != nil || len(found) != 0 {
		t.Errorf("R-MA-02: after its removal the server has %+v, %v", found, err)
	}
}

const sourceEdit = `"configSource":{"configMapRef":{"namespace":"default","name":"c","uid":"u-1","key":"kubelet"}}`

// R-MA-17: on a real server, an edit of labels, annotations, taints and the config source of a machine reaches its Node while it works, and what leaves the spec
// is taken away again. What others have written stays.
func TestSettingsReachTheNodeOnTheServer(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.must(shared.Env(t).InstallCRDs(b.ctx(), configv1alpha1.CRDs()...))
	factory := informers.NewSharedInformerFactory(b.core, 0)
	configs, err := kube.NewConfigs(b.dynamic)
	b.must(err)
	b.nodes, err = kube.NewNodes(b.core, factory.Core().V1().Nodes().Informer(), configs)
	b.must(err)
	factory.Start(t.Context().Done())
	b.options.Nodes = b.nodes
	b.run()
	b.create("a", map[string]any{"providerConfig": map[string]any{"image": "a"}, "deletion": map[string]any{"diskPolicy": "Destroy"}})
	m := b.running("a")
	name := m.Status.NodeRef.Name
	b.patchNode(name, `{"metadata":{"labels":{"theirs":"1"}}}`)
	b.edit("a", `{"spec":{"nodeMetadata":{"labels":{"pool":"blue"},"annotations":{"note":"n"}},"taints":[{"key":"dedicated","effect":"NoSchedule"}],`+sourceEdit+`}}`)
	b.eventually("the settings on the Node", func() (bool, error) {
		n, err := b.core.CoreV1().Nodes().Get(b.ctx(), name, metav1.GetOptions{})
		return err == nil && n.Labels["pool"] == "blue" && n.Annotations["note"] == "n" && hasTaint(n, "dedicated") && b.source(name) == "c", err
	})
	b.patchNode(name, `{"metadata":{"labels":{"pool":"red"}}}`)
	b.edit("a", `{"spec":{"nodeMetadata":{"labels":{"tier":"1"},"annotations":null},"taints":null,"configSource":null}}`)
	b.edit("a", `{"spec":{"nodeMetadata":{"labels":{"pool":null}}}}`)
	b.eventually("the settings off the Node", func() (bool, error) {
		n, err := b.core.CoreV1().Nodes().Get(b.ctx(), name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		_, note := n.Annotations["note"]
		return n.Labels["tier"] == "1" && !note && !hasTaint(n, "dedicated") && b.source(name) == "", nil
	})
	n, err := b.core.CoreV1().Nodes().Get(b.ctx(), name, metav1.GetOptions{})
	b.must(err)
	if n.Labels["theirs"] != "1" || n.Labels["pool"] != "red" {
		t.Errorf("R-MA-17: what others have written is %v", n.Labels)
	}
	if at := b.running("a"); at.Status.Incarnation != 1 || b.cloud.Calls()["Plan"]+b.cloud.Calls()["Update"] != 0 {
		t.Errorf("R-MA-17: incarnation %d after the calls %v", at.Status.Incarnation, b.cloud.Calls())
	}
	b.delete("a")
	b.gone("a")
}

func hasTaint(n *corev1.Node, key string) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == key {
			return true
		}
	}
	return false
}

func (b *bed) patchNode(name, patch string) {
	b.t.Helper()
	_, err := b.core.CoreV1().Nodes().Patch(b.ctx(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	b.must(err)
}

// source is the ConfigMap that the NodeConfig of a Node names.
func (b *bed) source(node string) string {
	b.t.Helper()
	u, err := b.dynamic.Resource(configv1alpha1.NodeConfigsResource).Get(b.ctx(), node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	b.must(err)
	name, _, err := unstructured.NestedString(u.Object, "spec", "source", "configMapRef", "name")
	b.must(err)
	return name
}

// R-MA-11: the mark for the autoscaler is set and taken away on a real server, that of somebody else stays, and a Node that is gone is not made again.
func TestMarkOnTheServer(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	n := b.node("marked-"+b.namespace, "memory:///z/marked")
	ref := machine.NodeRef{Name: n.Name, UID: string(n.UID)}
	has := func() (string, bool) {
		n, err := b.core.CoreV1().Nodes().Get(b.ctx(), n.Name, metav1.GetOptions{})
		b.must(err)
		return n.Annotations[machine.NoScaleDownAnnotation], n.Annotations[kube.MarkAnnotation] != ""
	}
	b.must(b.nodes.Mark(b.ctx(), ref, true))
	if value, ours := has(); value != "true" || !ours {
		t.Errorf("R-MA-11: marked, it has %q, ours %t", value, ours)
	}
	b.must(b.nodes.Mark(b.ctx(), ref, false))
	if value, ours := has(); value != "" || ours {
		t.Errorf("R-MA-11: unmarked, it has %q, ours %t", value, ours)
	}
	b.patchNode(n.Name, `{"metadata":{"annotations":{"`+machine.NoScaleDownAnnotation+`":"false"}}}`)
	for _, on := range []bool{true, false} {
		b.must(b.nodes.Mark(b.ctx(), ref, on))
		if value, ours := has(); value != "false" || ours {
			t.Errorf("R-MA-11: what somebody has set is %q, ours %t", value, ours)
		}
	}
	b.must(b.core.CoreV1().Nodes().Delete(b.ctx(), n.Name, metav1.DeleteOptions{}))
	b.must(b.nodes.Mark(b.ctx(), ref, true))
	if _, err := b.core.CoreV1().Nodes().Get(b.ctx(), n.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("R-MA-11: a Node that was gone is there again: %v", err)
	}
}
