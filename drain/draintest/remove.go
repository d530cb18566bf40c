// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// deletePod deletes a pod as the server does: a pod that runs on a node is marked with the time at which it has to be gone, any other
// is gone at once. Finalizers keep it in any case.
func (c *Cluster) deletePod(e eviction) error {
	pod := c.pods.get(e.key)
	if pod == nil {
		return apierrors.NewNotFound(podResource(), e.key.Name)
	}
	if e.uid != "" && e.uid != pod.UID {
		return otherUID(pod.Name, e.uid, pod.UID)
	}
	if e.dryRun {
		return nil
	}
	if pod.DeletionTimestamp != nil {
		return c.hurryPod(pod, e.grace)
	}
	grace := graceOf(pod, e.grace)
	if grace == 0 && len(pod.Finalizers) == 0 {
		c.dropPod(pod)
		return nil
	}
	pod = pod.DeepCopy()
	pod.DeletionTimestamp = ptr.To(stamp(c.now().Add(time.Duration(grace) * time.Second)))
	pod.DeletionGracePeriodSeconds = &grace
	c.putPod(pod)
	return nil
}

// graceOf is the grace period with which the server deletes a pod.
func graceOf(pod *corev1.Pod, asked *int64) int64 {
	if pod.Spec.NodeName == "" || finished(pod) {
		return 0
	}
	grace := ptr.Deref(asked, ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0))
	if grace < 0 {
		return 1
	}
	return grace
}

// hurryPod deletes a pod that is being deleted already: the grace period can only become shorter.
func (c *Cluster) hurryPod(pod *corev1.Pod, asked *int64) error {
	left := ptr.Deref(pod.DeletionGracePeriodSeconds, 0)
	if left == 0 {
		if len(pod.Finalizers) == 0 {
			c.dropPod(pod)
		}
		return nil
	}
	if asked == nil || *asked >= left {
		return nil
	}
	grace := *asked
	if grace < 0 {
		grace = 1
	}
	at := pod.DeletionTimestamp.Add(time.Duration(grace-left) * time.Second)
	if now := c.now(); at.Before(now) {
		at = now
		if grace != 0 {
			grace = 1
		}
	}
	if grace == 0 && len(pod.Finalizers) == 0 {
		c.dropPod(pod)
		return nil
	}
	pod = pod.DeepCopy()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(stamp(at)), &grace
	c.putPod(pod)
	return nil
}

// stamp is a time as objects hold it: whole seconds.
func stamp(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
