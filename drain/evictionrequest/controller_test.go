// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/internal/evictionapi"
)

// Two requesters of one pod share one Eviction, with labels, owners and status.requesters. Its responders take turns by
// priority, and the default one evicts the pod.
func TestRequestsBecomeOneEviction(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b == nil {
		return
	}
	b.run(b.env.Config(), true)
	pod := b.pod("web", withResponders(responder("acme.io/low", 2000), responder("acme.io/high", 10000)))
	b.request("drain", "acme.io/drainer", pod)
	b.request("other", "acme.io/high", pod)
	e := b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		return errors.Join(hasStates(e, map[string]string{
			"acme.io/high": "Active", "acme.io/low": "Inactive", evictionapi.ImperativeEvictor: "Inactive",
		}), hasLabels(e, map[string]string{
			"acme.io/drainer": "requester", "acme.io/high": "requester-responder", "acme.io/low": "responder",
			evictionapi.ImperativeEvictor: "responder",
		}), hasRequesters(e, "acme.io/drainer Eviction", "acme.io/high Eviction"))
	})
	if len(e.OwnerReferences) != 2 || e.Name != "pod-1-web" || *e.Status.ObservedGeneration != 1 {
		t.Errorf("owners %v, name %q, generation %v", e.OwnerReferences, e.Name, e.Status.ObservedGeneration)
	}
	b.waitRequest("drain", "AwaitingEviction", "AwaitingEviction")
	b.complete(e.Name, "acme.io/high")
	b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		return hasStates(e, map[string]string{
			"acme.io/high": "Completed", "acme.io/low": "Active", evictionapi.ImperativeEvictor: "Inactive",
		})
	})
	b.complete(e.Name, "acme.io/low")
	b.wait(func() error { return b.isTerminating("web") })
	b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		return errors.Join(hasStates(e, map[string]string{
			"acme.io/high": "Completed", "acme.io/low": "Completed", evictionapi.ImperativeEvictor: "Completed",
		}), hasReason(e.Status.Conditions, "TargetEvicted", "AwaitingEviction"))
	})
	b.kill("web")
	for _, name := range []string{"drain", "other"} {
		r := b.waitRequest(name, "PodDeleted", "Succeeded")
		if *r.Status.ObservedGeneration != 1 {
			t.Errorf("request %s: observedGeneration is %d", name, *r.Status.ObservedGeneration)
		}
	}
	b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		return hasReason(e.Status.Conditions, "TargetEvicted", "PodDeleted")
	})
}

func (b *bed) isTerminating(name string) error {
	pod, err := b.core.CoreV1().Pods(b.namespace).Get(b.t.Context(), name, metav1.GetOptions{})
	if err == nil && pod.DeletionTimestamp == nil {
		return fmt.Errorf("pod %s is not terminating", name)
	}
	return err
}

func hasLabels(e *evictionapi.Eviction, want map[string]string) error {
	if fmt.Sprint(e.Labels) != fmt.Sprint(want) {
		return fmt.Errorf("the labels are %v, want %v", e.Labels, want)
	}
	return nil
}

func hasRequesters(e *evictionapi.Eviction, want ...string) error {
	var got []string
	for _, r := range e.Status.Requesters {
		got = append(got, r.Name+" "+r.Intent)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the requesters are %v, want %v", got, want)
	}
	return nil
}

// The eviction goes on while one requester wants it, and is canceled when the last one withdraws. A new intent after
// that makes a new Eviction, and resets the conditions of the request.
func TestWithdrawalOfAllCancels(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b == nil {
		return
	}
	b.run(b.env.Config(), true)
	pod := b.pod("web", withResponders(responder("acme.io/high", 10000)))
	b.request("a", "acme.io/a", pod)
	b.request("b", "acme.io/b", pod)
	b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		return hasRequesters(e, "acme.io/a Eviction", "acme.io/b Eviction")
	})
	b.setIntent("a", evictionapi.IntentWithdrawn)
	b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		return errors.Join(hasRequesters(e, "acme.io/a Withdrawn", "acme.io/b Eviction"),
			hasStates(e, map[string]string{"acme.io/high": "Active", evictionapi.ImperativeEvictor: "Inactive"}))
	})
	b.must(b.requests().Delete(t.Context(), "b", metav1.DeleteOptions{}))
	first := b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		return errors.Join(hasRequesters(e, "acme.io/a Withdrawn", "acme.io/b Withdrawn"),
			hasStates(e, map[string]string{"acme.io/high": "Canceled", evictionapi.ImperativeEvictor: "Inactive"}),
			hasReason(e.Status.Conditions, "Failed", "CanceledDueToNoRequesters"))
	})
	b.waitRequest("a", "EvictionFailed", "CanceledDueToNoRequesters")
	b.setIntent("a", evictionapi.IntentEviction)
	r := b.waitRequest("a", "AwaitingEviction", "AwaitingEviction")
	if *r.Status.ObservedGeneration != 3 {
		t.Errorf("observedGeneration is %d, want 3", *r.Status.ObservedGeneration)
	}
	b.wait(func() error {
		all, err := b.of(pod)
		if err != nil || len(all) != 2 {
			return fmt.Errorf("there are %d Evictions, want the canceled one and a new one (%w)", len(all), err)
		}
		second := all[slices.IndexFunc(all, func(e *evictionapi.Eviction) bool { return e.UID != first.UID })]
		return hasStates(second, map[string]string{"acme.io/high": "Active", evictionapi.ImperativeEvictor: "Inactive"})
	})
}

// A request for a pod that is not there, under its UID, is invalid, and makes no Eviction.
func TestMissingPodIsInvalid(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b == nil {
		return
	}
	b.run(b.env.Config(), true)
	pod := b.pod("web", nil)
	replaced := pod
	replaced.UID = "00000000-0000-4000-8000-000000000000"
	b.request("a", "acme.io/a", replaced)
	b.waitRequest("a", "EvictionFailed", "EvictionInvalid")
	if all, err := b.of(replaced); err != nil || len(all) != 0 {
		t.Errorf("Evictions: %v, %v", all, err)
	}
	if _, err := b.core.CoreV1().Pods(b.namespace).Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// A pod of a PodGroup is refused with words, and nothing touches it.
func TestPodOfGroupIsInvalid(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b == nil {
		return
	}
	b.run(b.env.Config(), true)
	pod := b.pod("web", func(spec map[string]any) {
		spec["schedulingGroup"] = map[string]any{"podGroupName": "gang"}
	})
	b.request("a", "acme.io/a", pod)
	r := b.waitRequest("a", "EvictionFailed", "EvictionInvalid")
	want := "Target Pod web is part of a PodGroup. Eviction of such pods is not supported."
	if got := r.Status.Conditions[1].Message; got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
	if all, err := b.of(pod); err != nil || len(all) != 0 {
		t.Errorf("Evictions: %v, %v", all, err)
	}
}

// A pod that ends by itself counts as evicted; its responder that says nothing is interrupted.
func TestTerminalPodIsEvicted(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b == nil {
		return
	}
	b.run(b.env.Config(), true)
	pod := b.pod("job", withResponders(responder("acme.io/high", 10000)))
	b.request("a", "acme.io/a", pod)
	b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		return hasStates(e, map[string]string{"acme.io/high": "Active", evictionapi.ImperativeEvictor: "Inactive"})
	})
	b.phase("job", corev1.PodSucceeded)
	b.waitRequest("a", "PodTerminal", "Succeeded")
	b.waitEviction(pod, func(e *evictionapi.Eviction) error {
		return hasStates(e, map[string]string{"acme.io/high": "Interrupted", evictionapi.ImperativeEvictor: "Inactive"})
	})
}

// The Eviction goes when all of its requests are gone, also one that another client has created.
func TestEvictionIsCollected(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b == nil {
		return
	}
	b.run(b.env.Config(), true)
	pod, foreign := b.pod("web", withResponders(responder("acme.io/high", 10000))), b.pod("db", nil)
	b.request("a", "acme.io/a", pod)
	b.waitRequest("a", "AwaitingEviction", "AwaitingEviction")
	e := &evictionapi.Eviction{}
	e.Name = "by-hand"
	e.Spec.Target.Pod = &evictionapi.PodReference{Name: foreign.Name, UID: foreign.UID}
	u, err := evictionapi.EncodeEviction(e)
	b.must(err)
	_, err = b.evictions().Create(t.Context(), u, metav1.CreateOptions{})
	b.must(err)
	b.must(b.requests().Delete(t.Context(), "a", metav1.DeleteOptions{}))
	b.wait(func() error {
		list, err := b.evictions().List(t.Context(), metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			return fmt.Errorf("%d Evictions are left", len(list.Items))
		}
		return err
	})
	for _, name := range []string{"web", "db"} {
		if b.isTerminating(name) == nil {
			t.Errorf("pod %s was evicted", name)
		}
	}
}

// An Eviction of another client is adopted where a request has its target; a second one of the same target is refused.
func TestOneEvictionOfTarget(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b == nil {
		return
	}
	pod := b.pod("web", withResponders(responder("acme.io/high", 10000)))
	for _, name := range []string{"by-hand-1", "by-hand-2"} {
		e := &evictionapi.Eviction{}
		e.Name = name
		e.Spec.Target.Pod = &evictionapi.PodReference{Name: pod.Name, UID: pod.UID}
		u, err := evictionapi.EncodeEviction(e)
		b.must(err)
		_, err = b.evictions().Create(t.Context(), u, metav1.CreateOptions{})
		b.must(err)
	}
	b.request("a", "acme.io/a", pod)
	b.run(b.env.Config(), true)
	b.waitRequest("a", "AwaitingEviction", "AwaitingEviction")
	b.wait(func() error {
		all, err := b.of(pod)
		if err != nil || len(all) != 2 {
			return fmt.Errorf("%d Evictions, %w", len(all), err)
		}
		slices.SortFunc(all, func(x, y *evictionapi.Eviction) int {
			return len(y.Status.TargetResponders) - len(x.Status.TargetResponders)
		})
		return errors.Join(
			hasStates(all[0], map[string]string{"acme.io/high": "Active", evictionapi.ImperativeEvictor: "Inactive"}),
			hasReason(all[1].Status.Conditions, "Failed", "EvictionInvalid"),
			hasStates(all[1], map[string]string{}))
	})
}

// Two processes at once, and each pod has one Eviction: a process that sees less than the other one creates it under
// the same name.
func TestTwoControllers(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b == nil {
		return
	}
	b.run(b.env.Config(), true)
	b.run(b.env.Config(), true)
	for i := range 20 {
		name := fmt.Sprintf("web-%d", i)
		pod := b.pod(name, func(spec map[string]any) { spec["terminationGracePeriodSeconds"] = int64(0) })
		b.request(name, "acme.io/a", pod)
		b.wait(func() error { return b.isEvicted(name, pod) })
	}
}
