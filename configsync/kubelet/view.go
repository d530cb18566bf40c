// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync"
)

var (
	nodesResource  = corev1.SchemeGroupVersion.WithResource("nodes")
	podsResource   = corev1.SchemeGroupVersion.WithResource("pods")
	leasesResource = coordinationv1.SchemeGroupVersion.WithResource("leases")
)

// viewTTL is for how long the probes of one round share an answer about the Node.
const viewTTL = time.Second

// A nodeView reads one node at the API server, from the API server's memory.
type nodeView struct {
	client dynamic.Interface
	name   string

	mu   sync.Mutex
	at   time.Time // monotonic
	node *corev1.Node
	err  error
}

// readNode returns the Node, at most [viewTTL] old, or the error of reading it. Nil without an error means that there
// is none.
func (v *nodeView) readNode(ctx context.Context) (*corev1.Node, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.at.IsZero() && time.Since(v.at) < viewTTL {
		return v.node, v.err
	}
	var node corev1.Node
	found, err := v.getObject(ctx, v.client.Resource(nodesResource), "the Node", &node)
	v.node, v.err, v.at = nil, err, time.Now()
	if found {
		v.node = &node
	}
	return v.node, v.err
}

// readLease returns the node's Lease, or nil if there is none.
func (v *nodeView) readLease(ctx context.Context) (*coordinationv1.Lease, error) {
	var lease coordinationv1.Lease
	found, err := v.getObject(ctx, v.client.Resource(leasesResource).Namespace(corev1.NamespaceNodeLease),
		"the node's Lease",
		&lease)
	if !found {
		return nil, err
	}
	return &lease, nil
}

func (v *nodeView) getObject(ctx context.Context, from dynamic.ResourceInterface, what string, into any) (found bool,
	err error) {
	object, err := from.Get(ctx, v.name, metav1.GetOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err == nil:
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
	}
	if err != nil {
		return false, newUnknown(what, err)
	}
	return true, nil
}

// readPods returns the pods of the node.
func (v *nodeView) readPods(ctx context.Context) ([]podState, error) {
	v.mu.Lock()
	err := v.err
	fresh := time.Since(v.at) < viewTTL
	v.mu.Unlock()
	if err != nil && fresh {
		return nil, err // the API server did not answer a moment ago
	}
	list, err := v.client.Resource(podsResource).List(ctx, metav1.ListOptions{
		ResourceVersion: "0", FieldSelector: fields.OneTermEqualSelector("spec.nodeName", v.name).String(),
	})
	if err != nil {
		return nil, newUnknown("the pods of the node", err)
	}
	pods := make([]podState, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, podStateOf(&list.Items[i]))
	}
	return pods, nil
}

// newUnknown is the answer of a probe that can't tell.
func newUnknown(what string, err error) error {
	text := fmt.Sprintf("the API server did not give %s: %v", what, err)
	if apierrors.IsForbidden(err) {
		text += "; grant the rights of ProbeRules (examples/agent: or give --node-probes=false)"
	}
	return &finding{text: text, is: configsync.ErrUndecided}
}

// A podState is what the probes use of a pod.
type podState struct {
	uid, name string // name is namespace/name
	owner     podOwner
	phase     corev1.PodPhase
	reason    string // why it has failed, in a word, if the kubelet or the cluster says so
	message   string
	ready     bool
	deleted   bool
}

// podOwner is the controller of a pod, if it has one.
type podOwner struct{ kind, name string }

// podStateOf reads a pod without its spec.
func podStateOf(u *unstructured.Unstructured) podState {
	p := podState{
		uid: string(u.GetUID()), name: u.GetNamespace() + "/" + u.GetName(), deleted: u.GetDeletionTimestamp() != nil,
	}
	if owner := metav1.GetControllerOfNoCopy(u); owner != nil {
		p.owner = podOwner{owner.Kind, u.GetNamespace() + "/" + owner.Name}
	}
	// A field that is absent, or of another type, reads as empty.
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	p.phase = corev1.PodPhase(phase)
	p.reason, _, _ = unstructured.NestedString(u.Object, "status", "reason")
	p.message, _, _ = unstructured.NestedString(u.Object, "status", "message")
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == string(corev1.PodReady) {
			p.ready = c["status"] == string(corev1.ConditionTrue)
		}
	}
	return p
}

// isFinished reports whether the pod has ended.
func (p *podState) isFinished() bool {
	return p.phase == corev1.PodSucceeded || p.phase == corev1.PodFailed
}

// isCounted reports whether the pod runs and is ready.
func (p *podState) isCounted() bool { return !p.deleted && !p.isFinished() && p.ready }
