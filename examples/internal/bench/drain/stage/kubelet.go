// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// What a pod says of itself to the kubelet: Go durations.
const (
	readyAnnotation = "bench.belay.dev/ready-after"
	endAnnotation   = "bench.belay.dev/ends-after"
)

// callers bounds how many requests the kubelet has under way.
const callers = 24

// A kubelet plays the kubelets of all nodes: pods become ready, and end, after the times that they name.
type kubelet struct {
	client kubernetes.Interface
	slots  chan struct{}

	mu    sync.Mutex
	begun map[types.UID]stage // how far each pod has been taken
}

type stage int

const (
	starting stage = iota + 1
	ending
)

// startKubelet plays until ctx ends.
func startKubelet(ctx context.Context, client kubernetes.Interface) error {
	k := &kubelet{client: client, slots: make(chan struct{}, callers), begun: map[types.UID]stage{}}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.see(ctx, o) },
		UpdateFunc: func(_, o any) { k.see(ctx, o) },
		DeleteFunc: k.forget,
	})
	if err != nil {
		return fmt.Errorf("starting the kubelet: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		return fmt.Errorf("starting the kubelet: %w", ctx.Err())
	}
	return nil
}

func (k *kubelet) see(ctx context.Context, o any) {
	pod, ok := o.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return
	}
	switch {
	case pod.DeletionTimestamp != nil:
		k.later(ctx, pod, ending, endAnnotation, k.end)
	case pod.Status.Phase == corev1.PodPending:
		k.later(ctx, pod, starting, readyAnnotation, k.start)
	}
}

func (k *kubelet) forget(o any) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if pod, ok := o.(*corev1.Pod); ok {
		k.mu.Lock()
		delete(k.begun, pod.UID)
		k.mu.Unlock()
	}
}

// later does something to a pod once, after the time that its annotation names.
func (k *kubelet) later(ctx context.Context, pod *corev1.Pod, to stage, annotation string, do func(context.Context, *corev1.Pod) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.begun[pod.UID] >= to {
		return
	}
	k.begun[pod.UID] = to
	after, err := time.ParseDuration(pod.Annotations[annotation])
	if err != nil {
		after = 0
	}
	time.AfterFunc(after, func() {
		k.slots <- struct{}{}
		defer func() { <-k.slots }()
		if err := do(ctx, pod); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "kubelet: pod %s/%s: %v\n", pod.Namespace, pod.Name, err)
		}
	})
}

func (k *kubelet) start(ctx context.Context, pod *corev1.Pod) error {
	return markReady(ctx, k.client, pod)
}

func markReady(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	now := metav1.Now()
	yes := func(t corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &now,
			Conditions: []corev1.PodCondition{yes(corev1.PodInitialized), yes(corev1.ContainersReady), yes(corev1.PodReady)},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: containerName, Image: image, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
			}},
		},
	})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func (k *kubelet) end(ctx context.Context, pod *corev1.Pod) error {
	now := int64(0)
	return k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
}
