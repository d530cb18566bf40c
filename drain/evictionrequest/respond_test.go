// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/internal/evictionapi"
)

// evictionIn is an Eviction whose default responder is in a state.
func evictionIn(state string, heartbeat, completion *time.Time) *evictionapi.Eviction {
	e := &evictionapi.Eviction{}
	e.Status.TargetResponders = listResponders(nil)
	e.Status.TargetResponders[0].State = state
	started := metav1.NewTime(start)
	status := evictionapi.ResponderStatus{Name: evictionapi.ImperativeEvictor, StartTime: &started}
	if heartbeat != nil {
		status.HeartbeatTime = &metav1.Time{Time: *heartbeat}
	}
	if completion != nil {
		status.CompletionTime = &metav1.Time{Time: *completion}
	}
	e.Status.Responders = []evictionapi.ResponderStatus{status}
	return e
}

// The default responder acts in state Active alone. It leaves pods that terminate or have ended, mirror pods and pods
// of DaemonSets alone, and completes.
func TestDefaultResponder(t *testing.T) {
	t.Parallel()
	now, deleted := start.Add(time.Hour), metav1.NewTime(start)
	recent := now.Add(-time.Second)
	isController := true
	mirror, terminating, ended, daemon := &corev1.Pod{}, &corev1.Pod{}, &corev1.Pod{}, &corev1.Pod{}
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	terminating.DeletionTimestamp = &deleted
	ended.Status.Phase = corev1.PodFailed
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", Controller: &isController}}
	for name, c := range map[string]struct {
		eviction *evictionapi.Eviction
		pod      *corev1.Pod
		attempt  attempt
		want     step
		after    time.Duration
	}{
		"inactive":       {evictionIn(evictionapi.StateInactive, nil, nil), &corev1.Pod{}, attempt{}, stepNone, 0},
		"canceled":       {evictionIn(evictionapi.StateCanceled, nil, nil), &corev1.Pod{}, attempt{}, stepNone, 0},
		"interrupted":    {evictionIn(evictionapi.StateInterrupted, nil, nil), &corev1.Pod{}, attempt{}, stepNone, 0},
		"has completed":  {evictionIn(evictionapi.StateActive, nil, &now), &corev1.Pod{}, attempt{}, stepNone, 0},
		"active":         {evictionIn(evictionapi.StateActive, nil, nil), &corev1.Pod{}, attempt{}, stepEvict, 0},
		"not in cache":   {evictionIn(evictionapi.StateActive, nil, nil), nil, attempt{}, stepEvict, 0},
		"terminating":    {evictionIn(evictionapi.StateActive, nil, nil), terminating, attempt{}, stepComplete, 0},
		"terminal":       {evictionIn(evictionapi.StateActive, nil, nil), ended, attempt{}, stepComplete, 0},
		"mirror pod":     {evictionIn(evictionapi.StateActive, nil, nil), mirror, attempt{}, stepComplete, 0},
		"of a DaemonSet": {evictionIn(evictionapi.StateActive, nil, nil), daemon, attempt{}, stepComplete, 0},
		"asked before it": {
			evictionIn(evictionapi.StateActive, &recent, nil), &corev1.Pod{}, attempt{}, stepWait, 19 * time.Second,
		},
		"failed twice": {
			evictionIn(evictionapi.StateActive, nil, nil), &corev1.Pod{}, attempt{2, now}, stepWait, 40 * time.Second,
		},
		"failed often": {
			evictionIn(evictionapi.StateActive, nil, nil), &corev1.Pod{}, attempt{30, now}, stepWait, 15 * time.Minute,
		},
		"due again": {
			evictionIn(evictionapi.StateActive, nil, nil), &corev1.Pod{}, attempt{30, start}, stepEvict, 0,
		},
	} {
		got := decideResponse(c.eviction, c.pod, c.attempt, now)
		if got.step != c.want || got.after != c.after {
			t.Errorf("%s: %s after %s, want %s after %s", name, got.step, got.after, c.want, c.after)
		}
		if got.step == stepComplete && got.message == "" {
			t.Errorf("%s: no message", name)
		}
	}
	if longestBackoff >= heartbeatDeadline {
		t.Error("the back-off is longer than the heartbeat deadline")
	}
}

// A message has the count, the API server's words, and no more than the API server takes.
func TestMessageIsBounded(t *testing.T) {
	t.Parallel()
	got := describeFailure(7, "AdmissionDenied", strings.Repeat("ä", 5000))
	if !strings.Contains(got, "number of retries: 7. AdmissionDenied: ää") || utf8.RuneCountInString(got) != maxMessage {
		t.Errorf("%d characters: %.200s", utf8.RuneCountInString(got), got)
	}
}
