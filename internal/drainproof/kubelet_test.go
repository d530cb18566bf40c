// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const (
	// endsAfter is how long a played pod takes to end.
	endsAfter = 150 * time.Millisecond
	// unreadyLabel keeps a pod from becoming ready.
	unreadyLabel = "drainproof/unready"
)

// kubelets play the kubelets of a cluster's nodes: a pod that is bound starts and becomes ready at once, one that is deleted ends a
// little later.
type kubelets struct {
	client kubernetes.Interface
	ctx    context.Context
	work   sync.WaitGroup
	mu     sync.Mutex
	begun  map[types.UID]string // what has been begun for a pod
}

// playKubelets plays for the pods of a namespace, or of all, until the returned function is called, or the test ends.
func playKubelets(t *testing.T, client kubernetes.Interface, namespace string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	k := &kubelets{client: client, ctx: ctx, begun: map[types.UID]string{}}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	pods := factory.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.see(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { k.see(o.(*corev1.Pod)) },
	})
	must(t, err)
	factory.Start(ctx.Done())
	stop = func() { cancel(); factory.Shutdown(); k.work.Wait() }
	t.Cleanup(stop)
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		t.Fatal("the kubelets' cache has not synced")
	}
	return stop
}

// see does what a kubelet would about a pod.
func (k *kubelets) see(pod *corev1.Pod) {
	switch {
	case pod.Spec.NodeName == "":
	case pod.DeletionTimestamp != nil:
		k.once(pod, "end", k.end)
	case pod.Status.Phase == corev1.PodPending:
		k.once(pod, "start", k.start)
	}
}

// once does a thing for a pod, unless it was the last that was begun for it.
func (k *kubelets) once(pod *corev1.Pod, what string, do func(*corev1.Pod)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.begun[pod.UID] == what || k.ctx.Err() != nil {
		return
	}
	k.begun[pod.UID] = what
	k.work.Go(func() { do(pod) })
}

// start reports the pod as running, with the UID, so that it does not speak of another of its name.
func (k *kubelets) start(pod *corev1.Pod) {
	ready := corev1.ConditionTrue
	if pod.Labels[unreadyLabel] != "" {
		ready = corev1.ConditionFalse
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"phase": corev1.PodRunning, "conditions": []corev1.PodCondition{
			{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now()},
		}},
	})
	if err == nil {
		_, _ = k.client.CoreV1().Pods(pod.Namespace).Patch(k.ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
}

// end removes the pod after it has had time to end.
func (k *kubelets) end(pod *corev1.Pod) {
	timer := time.NewTimer(endsAfter)
	defer timer.Stop()
	select {
	case <-k.ctx.Done():
		return
	case <-timer.C:
	}
	_ = k.client.CoreV1().Pods(pod.Namespace).Delete(k.ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
}
