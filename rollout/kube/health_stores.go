// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/informer"
)

// Indices of the informers that a [Health] reads.
const (
	byNode     = "rollout.belay.dev/node"
	byWorkload = "rollout.belay.dev/workload"
)

// stores are what the informers of a [Health] know.
type stores struct {
	nodes, pods, deployments, statefulSets, daemonSets cache.Indexer
}

// over takes informers, and returns whether each has synced.
func (s *stores) over(in Informers) (synced []func() bool, err error) {
	var errs []error
	for _, part := range []struct {
		option   string
		store    *cache.Indexer
		informer Informer
		indexers cache.Indexers
	}{
		{"Informers.Nodes", &s.nodes, in.Nodes, nil},
		{"Informers.Pods", &s.pods, in.Pods, cache.Indexers{byNode: nodeOfPod, byWorkload: workloadOfPod}},
		{"Informers.Deployments", &s.deployments, in.Deployments, cache.Indexers{byWorkload: itself(deployment)}},
		{"Informers.StatefulSets", &s.statefulSets, in.StatefulSets, cache.Indexers{byWorkload: itself(statefulSet)}},
		{"Informers.DaemonSets", &s.daemonSets, in.DaemonSets, cache.Indexers{byWorkload: itself(daemonSet)}},
	} {
		var err error
		if *part.store, err = informer.Indexer(part.option, part.informer, part.indexers); err != nil {
			errs = append(errs, err)
			continue
		}
		synced = append(synced, part.informer.HasSynced)
	}
	return synced, errors.Join(errs...)
}

func (s *stores) node(name string) (*corev1.Node, bool) {
	obj, _, _ := s.nodes.GetByKey(name) // a store in memory has no errors
	node, ok := obj.(*corev1.Node)
	return node, ok
}

func (s *stores) onNode(name string) []*corev1.Pod { return indexed[*corev1.Pod](s.pods, byNode, name) }

// podsOf counts the pods of a workload that are ready, and those that are there, and names it; empty if there is none.
func (s *stores) podsOf(digest string) (ready, there int, name string) {
	for _, pod := range indexed[*corev1.Pod](s.pods, byWorkload, digest) {
		if w, ok := workloadOf(pod); ok {
			name = w.String()
		}
		if pod.DeletionTimestamp != nil || isFinished(pod) {
			continue
		}
		there++
		if isReady(pod) {
			ready++
		}
	}
	return ready, there, name
}

// asked is how many pods a workload should have, if that is known.
func (s *stores) asked(digest string) (n int, name string, known bool) {
	for _, d := range indexed[*appsv1.Deployment](s.deployments, byWorkload, digest) {
		return replicas(d.Spec.Replicas), workload{d.Namespace, deployment, d.Name}.String(), true
	}
	for _, set := range indexed[*appsv1.StatefulSet](s.statefulSets, byWorkload, digest) {
		return replicas(set.Spec.Replicas), workload{set.Namespace, statefulSet, set.Name}.String(), true
	}
	return 0, "", false
}

func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

// indexed is nil for an index that doesn't exist, which over has ruled out.
func indexed[T any](store cache.Indexer, index, value string) []T {
	objects, _ := store.ByIndex(index, value)
	all := make([]T, 0, len(objects))
	for _, o := range objects {
		if typed, ok := o.(T); ok {
			all = append(all, typed)
		}
	}
	return all
}

func nodeOfPod(obj any) ([]string, error) {
	if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}, nil
	}
	return nil, nil
}

func workloadOfPod(obj any) ([]string, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		if w, ok := workloadOf(pod); ok {
			return []string{w.digest()}, nil
		}
	}
	return nil, nil
}

func itself(kind string) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		if o, ok := obj.(metav1.Object); ok {
			return []string{workload{o.GetNamespace(), kind, o.GetName()}.digest()}, nil
		}
		return nil, nil
	}
}

// Kinds of workloads that are looked at more closely.
const (
	deployment  = "Deployment"
	statefulSet = "StatefulSet"
	daemonSet   = "DaemonSet"
)

// A workload is what makes pods anew. It goes by its name: one that was created anew with the same name does the same work.
type workload struct{ namespace, kind, name string }

// workloadOf is the workload of a pod; false for one that nobody makes anew. A ReplicaSet of a Deployment changes with each of its updates,
// so that the Deployment is the workload.
func workloadOf(pod *corev1.Pod) (workload, bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind == "Node" {
		return workload{}, false
	}
	w := workload{pod.Namespace, owner.Kind, owner.Name}
	if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; owner.Kind == "ReplicaSet" && hash != "" {
		if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok {
			w.kind, w.name = deployment, name
		}
	}
	return w, true
}

func (w workload) String() string { return fmt.Sprintf("%s %q", w.kind, w.namespace+"/"+w.name) }

// digestLength is how many hexadecimal digits of a digest are kept: enough to tell the workloads of a cluster apart.
const digestLength = 12

func (w workload) digest() string {
	sum := sha256.Sum256([]byte(w.namespace + "/" + w.kind + "/" + w.name))
	return hex.EncodeToString(sum[:])[:digestLength]
}

// counts reports whether a pod is at work.
func counts(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !isFinished(pod) && isReady(pod)
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
