// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/evictionapi"
)

// buildAnswer says how an EvictionRequest goes. One that no controller has observed in time is declined.
func (r *evictionRequester) buildAnswer(
	key requestKey, request *evictionapi.EvictionRequest, eviction *evictionapi.Eviction,
) drain.HookAnswer {
	a := requestAnswer(request, eviction)
	a.Message = shortened(a.Message)
	if at, err := time.Parse(time.RFC3339Nano, request.Annotations[sinceAnnotation]); err == nil {
		a.Since = at
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if request.Status.ObservedGeneration != nil || eviction != nil && !isOver(eviction) {
		delete(r.unseen, key)
		return a
	}
	now := r.now()
	if r.unseen[key].IsZero() {
		r.unseen[key] = now
	}
	name := key.namespace + "/" + key.name
	if now.Before(r.unseen[key].Add(unobservedLimit)) {
		a.Message = fmt.Sprintf("no evictionrequest-controller has observed EvictionRequest %s yet; without one the pod "+
			"is evicted after %s", name, unobservedLimit)
		return a
	}
	a.Progress = drain.HookDeclined
	a.Message = fmt.Sprintf("no evictionrequest-controller has observed EvictionRequest %s within %s",
		name, unobservedLimit)
	return a
}

// isOver reports whether an Eviction has failed for good.
func isOver(eviction *evictionapi.Eviction) bool {
	return conditionTrue(eviction.Status.Conditions, evictionapi.ConditionFailed) != nil
}

// requestAnswer reads the conditions of both objects, and then how far the responders of the pod have come.
func requestAnswer(request *evictionapi.EvictionRequest, eviction *evictionapi.Eviction) drain.HookAnswer {
	observed := request.Status.ObservedGeneration != nil && *request.Status.ObservedGeneration >= request.Generation
	if observed { // what it says of an earlier intent does not count
		if c := conditionTrue(request.Status.Conditions, evictionapi.ConditionTargetEvicted); c != nil {
			return drain.HookAnswer{Progress: drain.HookDone, Message: describeCondition(c)}
		}
		if c := conditionTrue(request.Status.Conditions, evictionapi.ConditionFailed); c != nil {
			return declineWith(describeCondition(c))
		}
	}
	if eviction == nil {
		return drain.HookAnswer{Progress: drain.HookAsked, Beat: fmt.Sprint("observed ", observed)}
	}
	if c := conditionTrue(eviction.Status.Conditions, evictionapi.ConditionTargetEvicted); c != nil {
		return drain.HookAnswer{Progress: drain.HookDone, Message: describeCondition(c)}
	}
	// A result may be of the time before this EvictionRequest, for which the controller then makes another Eviction.
	if c := conditionTrue(eviction.Status.Conditions, evictionapi.ConditionFailed); c != nil {
		if observed && c.Reason != evictionapi.ReasonCanceledDueToNoRequesters {
			return declineWith(describeCondition(c))
		}
		return drain.HookAnswer{Progress: drain.HookAsked, Beat: fmt.Sprint("observed ", observed)}
	}
	return respondersAnswer(&eviction.Status)
}

// respondersAnswer says how far the responders of the pod have come. After them comes the default responder, which
// evicts the pod through the same subresource as the drain: its turn is the drain's.
func respondersAnswer(status *evictionapi.EvictionStatus) drain.HookAnswer {
	open, interrupted, own := false, "", 0
	for _, t := range status.TargetResponders {
		if t.Name == evictionapi.ImperativeEvictor {
			continue
		}
		own++
		switch t.State {
		case evictionapi.StateCompleted:
		case evictionapi.StateInterrupted:
			interrupted = t.Name
		case evictionapi.StateActive:
			return activeAnswer(status, t.Name)
		default:
			open = true
		}
	}
	switch {
	case open || len(status.TargetResponders) == 0:
		return drain.HookAnswer{Progress: drain.HookAsked, Beat: beatOf(status, ""), Message: "no responder is active yet"}
	case own == 0:
		return declineWith("the pod has no responder of its own")
	case interrupted != "":
		return declineWith(fmt.Sprintf("responder %s has been interrupted", interrupted))
	default:
		return drain.HookAnswer{Progress: drain.HookDone, Message: "each of the pod's responders has completed"}
	}
}

func activeAnswer(status *evictionapi.EvictionStatus, name string) drain.HookAnswer {
	a := drain.HookAnswer{Progress: drain.HookWorking, Beat: beatOf(status, name), Message: name}
	for i := range status.Responders {
		if m := status.Responders[i].Message; status.Responders[i].Name == name && m != nil && *m != "" {
			a.Message += ": " + *m
		}
	}
	return a
}

// beatOf changes with the state of each responder, and with the status of the active one.
func beatOf(status *evictionapi.EvictionStatus, active string) string {
	var parts []string
	for _, t := range status.TargetResponders {
		parts = append(parts, t.Name+" "+t.State)
	}
	for i := range status.Responders {
		s := &status.Responders[i]
		if s.Name != active {
			continue
		}
		parts = append(parts, timeText(s.StartTime), timeText(s.HeartbeatTime), timeText(s.ExpectedCompletionTime))
		if s.Message != nil {
			parts = append(parts, *s.Message)
		}
	}
	return strings.Join(parts, "\n")
}

func timeText(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// conditionTrue returns the condition of that type where it is true.
func conditionTrue(conditions []metav1.Condition, kind string) *metav1.Condition {
	if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

func describeCondition(c *metav1.Condition) string {
	if c.Message == "" {
		return c.Type + " for " + c.Reason
	}
	return fmt.Sprintf("%s for %s: %s", c.Type, c.Reason, c.Message)
}
