// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/internal/evictionapi"
)

// setConditions returns the conditions with both of the controller's. A condition of another type stays.
func setConditions(old []metav1.Condition, o outcome, now time.Time) []metav1.Condition {
	conditions := slices.Clone(old)
	set := func(kind string, is bool, reason, message string) {
		status := metav1.ConditionFalse
		if is {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	set(evictionapi.ConditionTargetEvicted, o.evicted, o.evictedReason, o.evictedMessage)
	set(evictionapi.ConditionFailed, o.failed, o.failedReason, o.failedPhrase)
	return conditions
}

// copyOutcome is what the conditions of an Eviction say.
func copyOutcome(e *evictionapi.Eviction) outcome {
	evicted := meta.FindStatusCondition(e.Status.Conditions, evictionapi.ConditionTargetEvicted)
	failed := meta.FindStatusCondition(e.Status.Conditions, evictionapi.ConditionFailed)
	if evicted == nil || failed == nil {
		return awaitingOutcome()
	}
	return outcome{
		evicted: evicted.Status == metav1.ConditionTrue, evictedReason: evicted.Reason, evictedMessage: evicted.Message,
		failed: failed.Status == metav1.ConditionTrue, failedReason: failed.Reason, failedPhrase: failed.Message,
	}
}

// setRequestStatus returns the request with its new status, or nil if it has that already.
func setRequestStatus(r *evictionapi.EvictionRequest, o outcome, now time.Time) *evictionapi.EvictionRequest {
	to := *r
	generation := r.Generation
	to.Status.ObservedGeneration = &generation
	to.Status.Conditions = setConditions(r.Status.Conditions, o, now)
	if equality.Semantic.DeepEqual(r.Status, to.Status) {
		return nil
	}
	return &to
}
