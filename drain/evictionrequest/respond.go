// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/evictionapi"
)

const (
	firstBackoff   = 20 * time.Second // no heartbeat may follow another one sooner
	longestBackoff = 15 * time.Minute // less than the heartbeat deadline
	maxMessage     = 4000             // characters, which the API server takes
)

// A step is what the default responder does about one Eviction now.
type step string

const (
	stepNone     step = "None"     // it is not this responder's turn
	stepWait     step = "Wait"     // until the back-off is over
	stepEvict    step = "Evict"    // ask the API server to evict the pod
	stepComplete step = "Complete" // there is nothing more to do for this responder
)

// A response is a step, when to look again, and the words for the status.
type response struct {
	step    step
	after   time.Duration
	message string
}

// An attempt is what the process remembers of the evictions that it has asked for.
type attempt struct {
	failed int
	last   time.Time // when it last asked
}

// decideResponse is the whole decision of the default responder. It is a pure function. pod is nil for one that the
// cache does not show: the answer to an eviction says whether it is gone.
func decideResponse(e *evictionapi.Eviction, pod *corev1.Pod, a attempt, now time.Time) response {
	own := func(r evictionapi.TargetResponder) bool { return r.Name == evictionapi.ImperativeEvictor }
	i := slices.IndexFunc(e.Status.TargetResponders, own)
	if i < 0 || e.Status.TargetResponders[i].State != evictionapi.StateActive {
		return response{step: stepNone}
	}
	status := newTurn(e.Status).statuses[evictionapi.ImperativeEvictor]
	if status.CompletionTime != nil {
		return response{step: stepNone}
	}
	if message := whyComplete(pod); message != "" {
		return response{step: stepComplete, message: message}
	}
	last := a.last
	if status.HeartbeatTime != nil && status.HeartbeatTime.After(last) {
		last = status.HeartbeatTime.Time // of a process before this one
	}
	if last.IsZero() {
		return response{step: stepEvict}
	}
	if wait := last.Add(backoff.After(max(a.failed-1, 0), firstBackoff, longestBackoff)).Sub(now); wait > 0 {
		return response{step: stepWait, after: wait}
	}
	return response{step: stepEvict}
}

// whyComplete returns why no eviction has to be asked for, or nothing.
func whyComplete(pod *corev1.Pod) string {
	switch {
	case pod == nil:
		return ""
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return "The pod has reached a terminal phase."
	case pod.DeletionTimestamp != nil:
		return "The pod is terminating."
	case pod.Annotations[corev1.MirrorPodAnnotationKey] != "":
		return "The pod is a mirror pod. Eviction through pods/eviction is not supported."
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "DaemonSet" {
		return fmt.Sprintf("The pod belongs to DaemonSet %s. Eviction through pods/eviction is not supported.", owner.Name)
	}
	return ""
}

// describeFailure is the message after a number of evictions that were refused.
func describeFailure(failed int, verdict, words string) string {
	message := fmt.Sprintf(
		"Could not evict a pod due to failing eviction requests, number of retries: %d. %s: %s", failed, verdict, words)
	if runes := []rune(message); len(runes) > maxMessage {
		return string(runes[:maxMessage])
	}
	return message
}
