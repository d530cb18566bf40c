// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// givenTo reads the record of a Node. One that can't be read is none: the Node is given everything again.
func givenTo(n *corev1.Node) *machine.Given {
	text, there := n.Annotations[givenAnnotation]
	if !there {
		return nil
	}
	g := &machine.Given{}
	if err := json.Unmarshal([]byte(text), g); err != nil {
		return &machine.Given{}
	}
	return g
}

// Start implements [controller.Nodes]: one patch of the version that was seen.
func (s *nodeStore) Start(ctx context.Context, n machine.Node, m machine.Machine) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	obj, _, _ := s.store.GetByKey(n.Name) // the store of an informer has no errors
	node, ok := obj.(*corev1.Node)
	if !ok || string(node.UID) != n.UID {
		return fmt.Errorf("start Node %q: it has changed since it was read", n.Name)
	}
	change := nodeOf(node).Change(m)
	if change.Point {
		if s.configs == nil {
			return fmt.Errorf("start Node %q: machine %q has a config source, and there is nobody to point the Node at it", n.Name, m.Key)
		}
		if err := s.configs.Point(ctx, n.NodeRef, m.Spec.ConfigSource); err != nil {
			return fmt.Errorf("start Node %q: %w", n.Name, err)
		}
	}
	patch, err := startPatch(node, m, change)
	if err != nil {
		return fmt.Errorf("start Node %q: %w", n.Name, err)
	}
	if _, err := s.client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}); err != nil {
		return fmt.Errorf("start Node %q: %w", n.Name, err)
	}
	return nil
}

// startPatch gives a Node what its machine says. Labels, annotations and taints of others stay.
func startPatch(node *corev1.Node, m machine.Machine, change machine.NodeChange) ([]byte, error) {
	given, err := json.Marshal(change.Given)
	if err != nil {
		return nil, fmt.Errorf("annotation %q: %w", givenAnnotation, err)
	}
	mine, record := m.Key.String()+"/"+m.Token, string(given)
	annotations := map[string]*string{}
	maps.Copy(annotations, change.Annotations)
	annotations[machineAnnotation], annotations[givenAnnotation] = &mine, &record
	meta := map[string]any{"uid": node.UID, "resourceVersion": node.ResourceVersion, "annotations": annotations}
	if len(change.Labels) > 0 {
		meta["labels"] = change.Labels
	}
	patch := map[string]any{"metadata": meta}
	if taints, changed := taintsOf(node.Spec.Taints, change); changed {
		patch["spec"] = map[string]any{"taints": taints}
	}
	return json.Marshal(patch)
}

// taintsOf are the taints of a Node after a change. The list is written whole, in the version that was read.
func taintsOf(is []corev1.Taint, change machine.NodeChange) (taints []corev1.Taint, changed bool) {
	leaves := func(t corev1.Taint) bool {
		dropped := slices.Contains(change.Drop, provider.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
		replaced := slices.ContainsFunc(change.Taints, func(w provider.Taint) bool { return w.Key == t.Key && w.Effect == string(t.Effect) })
		return t.Key == UninitializedTaint || dropped || replaced
	}
	taints = slices.DeleteFunc(slices.Clone(is), leaves)
	changed = len(taints) != len(is) || len(change.Taints) > 0
	for _, t := range change.Taints {
		taints = append(taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return taints, changed
}

// Mark implements [controller.Nodes], by an apply: what somebody else has written there is a conflict, and stays. A Node that is gone is not made again, as its UID
// is named.
func (s *nodeStore) Mark(ctx context.Context, ref machine.NodeRef, on bool) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	o := applycorev1.Node(ref.Name).WithUID(uidOf(ref))
	if on {
		o.WithAnnotations(map[string]string{machine.NoScaleDownAnnotation: "true", markAnnotation: "true"})
	}
	_, err := s.client.CoreV1().Nodes().Apply(ctx, o, metav1.ApplyOptions{FieldManager: FieldManager})
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("mark Node %q for the autoscaler: %w", ref.Name, err)
	}
	return nil
}
