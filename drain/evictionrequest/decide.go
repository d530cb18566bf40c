// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/evictionapi"
)

const (
	maxRequesters = 100
	// reportGrace is how long a responder has, after its pod is gone, to write its completionTime. Without one it counts
	// as Interrupted, and the API server refuses its completionTime from then on.
	reportGrace = 10 * time.Second
)

// A podState is what is left of a target.
type podState string

const (
	podRunning     podState = "Running"
	podTerminating podState = "Terminating"
	podTerminal    podState = "Terminal" // its phase is Succeeded or Failed
	podGone        podState = "Gone"     // deleted, or replaced by one of another UID
)

// An observation is what is known of one target.
type observation struct {
	target     drain.PodRef
	requests   []*evictionapi.EvictionRequest
	evictions  []*evictionapi.Eviction
	pod        podState
	grouped    bool                       // it is part of a PodGroup
	responders []evictionapi.PodResponder // of the pod
	endedFor   time.Duration              // since this process saw that the pod was terminal or gone
	now        time.Time
}

// A decision is what has to be written for one target. Every part of it may be done alone: the next decision has the
// rest.
type decision struct {
	create   *evictionapi.Eviction   // its name is a counter's: see createEviction
	known    []*evictionapi.Eviction // of the target, when create was decided
	labels   []evictionChange        // of metadata: labels and owners
	statuses []evictionChange
	requests []*evictionapi.EvictionRequest // with their new status
	remove   []*evictionapi.Eviction
	after    time.Duration // when to look again without a trigger; 0 is never
}

// An evictionChange is an Eviction as it was observed and as it has to be.
type evictionChange struct{ from, to *evictionapi.Eviction }

// An outcome is what the two conditions say.
type outcome struct {
	evicted, failed              bool
	evictedReason, failedReason  string
	evictedMessage, failedPhrase string
}

func awaitingOutcome() outcome {
	return outcome{
		evictedReason: evictionapi.ReasonAwaitingEviction, failedReason: evictionapi.ReasonAwaitingEviction,
		evictedMessage: "The target has not been evicted yet.", failedPhrase: "The eviction is in progress.",
	}
}

func evictedBy(reason, message string) outcome {
	return outcome{
		evicted: true, evictedReason: reason, evictedMessage: message,
		failedReason: evictionapi.ReasonSucceeded, failedPhrase: "The target was evicted.",
	}
}

func failedBy(reason, message string) outcome {
	return outcome{
		failed: true, failedReason: reason, failedPhrase: message,
		evictedReason: evictionapi.ReasonEvictionFailed, evictedMessage: message,
	}
}

func (o outcome) isFinal() bool { return o.evicted || o.failed }

// decideWrites is the whole decision of the controller for one target. It is a pure function.
func decideWrites(o observation) decision {
	var d decision
	active := slices.ContainsFunc(o.requests, isActive)
	current := chooseCurrent(o.evictions)
	invalid := checkTarget(o)
	ended := o.pod == podGone || o.pod == podTerminal
	needsNew := current == nil || isFinal(current.Status.Conditions) && slices.ContainsFunc(o.requests, isNewIntent)
	if needsNew && active && !ended && invalid == "" {
		d.create, d.known = newEviction(o), o.evictions
	}
	for _, e := range o.evictions {
		if isFinal(e.Status.Conditions) {
			if len(o.requests) == 0 {
				d.remove = append(d.remove, e)
			}
			continue
		}
		d.updateEviction(o, e, current, invalid)
	}
	for _, r := range o.requests {
		result := outcomeOfRequests(o, active, invalid)
		if d.create != nil {
			result = awaitingOutcome()
		} else if current != nil {
			result = copyOutcome(current)
		}
		if updated := setRequestStatus(r, result, o.now); updated != nil {
			d.requests = append(d.requests, updated)
		}
	}
	return d
}

// isActive reports whether a requester wants the eviction. A request that is being deleted is withdrawn, whatever
// finalizers hold it.
func isActive(r *evictionapi.EvictionRequest) bool {
	return r.Spec.Intent == evictionapi.IntentEviction && r.DeletionTimestamp == nil
}

// isNewIntent reports whether a request wants the eviction since a generation that no status has answered.
func isNewIntent(r *evictionapi.EvictionRequest) bool {
	return isActive(r) && (r.Status.ObservedGeneration == nil || *r.Status.ObservedGeneration < r.Generation)
}

func isFinal(conditions []metav1.Condition) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool {
		final := c.Type == evictionapi.ConditionFailed || c.Type == evictionapi.ConditionTargetEvicted
		return final && c.Status == metav1.ConditionTrue
	})
}

// chooseCurrent returns the Eviction that counts: one that is not final before those that are, of those one whose
// responders are known, then the oldest. Of those that are final the newest counts.
func chooseCurrent(all []*evictionapi.Eviction) *evictionapi.Eviction {
	rank := func(e *evictionapi.Eviction) int {
		switch {
		case isFinal(e.Status.Conditions):
			return 2
		case len(e.Status.TargetResponders) == 0:
			return 1
		default:
			return 0
		}
	}
	if len(all) == 0 {
		return nil
	}
	return slices.MinFunc(all, func(a, b *evictionapi.Eviction) int {
		age := a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		if rank(a) == 2 && rank(b) == 2 {
			return cmp.Or(-age, cmp.Compare(counterOf(b), counterOf(a)), cmp.Compare(b.Name, a.Name))
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), age, cmp.Compare(a.Name, b.Name))
	})
}

// checkTarget returns why the target cannot be evicted by this API, or nothing.
func checkTarget(o observation) string {
	switch {
	case o.grouped:
		return fmt.Sprintf("Target Pod %s is part of a PodGroup. Eviction of such pods is not supported.", o.target.Name)
	case o.pod == podGone && len(o.evictions) == 0:
		return fmt.Sprintf("Target Pod %s with UID %s was not found.", o.target.Name, o.target.UID)
	default:
		return ""
	}
}

// outcomeOfRequests is for requests without an Eviction.
func outcomeOfRequests(o observation, active bool, invalid string) outcome {
	switch {
	case o.pod == podGone && slices.ContainsFunc(o.requests, wasEvicted):
		return evictedBy(evictionapi.ReasonPodDeleted, "The pod was deleted.")
	case invalid != "":
		return failedBy(evictionapi.ReasonEvictionInvalid, invalid)
	case o.pod == podTerminal:
		return evictedBy(evictionapi.ReasonPodTerminal, "The pod has reached a terminal phase.")
	case !active:
		return failedBy(evictionapi.ReasonCanceledDueToNoRequesters, canceledMessage)
	default:
		return awaitingOutcome()
	}
}

// wasEvicted reports whether a request says already that its target was evicted.
func wasEvicted(r *evictionapi.EvictionRequest) bool {
	return slices.ContainsFunc(r.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == evictionapi.ConditionTargetEvicted && c.Status == metav1.ConditionTrue
	})
}

const canceledMessage = "No EvictionRequest with this target has the intent Eviction."

// newEviction is the Eviction of the target, without its name.
func newEviction(o observation) *evictionapi.Eviction {
	e := &evictionapi.Eviction{}
	e.Namespace = o.target.Namespace
	e.Spec.Target.Pod = &evictionapi.PodReference{Name: o.target.Name, UID: o.target.UID}
	setParticipants(e, o, listResponders(o.responders))
	return e
}

// setParticipants sets the labels of requesters and responders, and the requests as owners. It removes none.
func setParticipants(e *evictionapi.Eviction, o observation, responders []evictionapi.TargetResponder) {
	labels := maps.Clone(e.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, r := range responders {
		if labels[r.Name] == "" {
			labels[r.Name] = evictionapi.RoleResponder
		}
	}
	isResponder := func(name string) bool {
		return slices.ContainsFunc(responders, func(r evictionapi.TargetResponder) bool { return r.Name == name })
	}
	for _, r := range o.requests {
		labels[r.Spec.Requester] = evictionapi.RoleRequester
		if isResponder(r.Spec.Requester) {
			labels[r.Spec.Requester] = evictionapi.RoleRequesterResponder
		}
	}
	e.Labels = labels
	owners := slices.Clone(e.OwnerReferences)
	for _, r := range o.requests {
		if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == r.UID }) {
			owners = append(owners, metav1.OwnerReference{
				APIVersion: evictionapi.Version().String(), Kind: "EvictionRequest", Name: r.Name, UID: r.UID,
			})
		}
	}
	e.OwnerReferences = owners
}

// updateEviction decides what has to be written of an Eviction that is not final.
func (d *decision) updateEviction(o observation, e, current *evictionapi.Eviction, invalid string) {
	to := *e
	status, after := nextStatus(o, e, current, invalid)
	to.Status = status
	if after > 0 && (d.after == 0 || after < d.after) {
		d.after = after
	}
	responders := status.TargetResponders
	if len(responders) == 0 && e == current {
		responders = listResponders(o.responders)
	}
	marked := *e
	setParticipants(&marked, o, responders)
	if !maps.Equal(marked.Labels, e.Labels) || !slices.Equal(marked.OwnerReferences, e.OwnerReferences) {
		d.labels = append(d.labels, evictionChange{e, &marked})
		return // the status is for the next pass: this write changes the resourceVersion
	}
	if !equality.Semantic.DeepEqual(e.Status, to.Status) {
		d.statuses = append(d.statuses, evictionChange{e, &to})
	}
}

// nextStatus is the status that an Eviction has to have, and when it has to be looked at again.
func nextStatus(
	o observation, e, current *evictionapi.Eviction, invalid string,
) (evictionapi.EvictionStatus, time.Duration) {
	status := e.Status
	status.Requesters = mergeRequesters(e.Status.Requesters, o.requests)
	generation := e.Generation
	status.ObservedGeneration = &generation
	t := newTurn(e.Status)
	result, after := outcomeOf(o, e, current, invalid, t)
	switch {
	case result.evicted:
		t.endActive(evictionapi.StateInterrupted)
	case result.failed:
		t.endActive(evictionapi.StateCanceled)
	case after > 0: // the pod has ended, and its responder may still say so
	default:
		if len(t.targets) == 0 {
			t.targets = listResponders(o.responders)
		}
		if deadline := t.advanceTurn(o.now); !deadline.IsZero() {
			after = max(deadline.Sub(o.now), time.Second)
		}
		if t.isOver() && o.pod == podRunning {
			result = failedBy(evictionapi.ReasonNoFurtherResponder, "Every responder has ended, and the pod still runs.")
		}
	}
	if len(t.targets) > 0 {
		status.TargetResponders, status.Responders = t.targets, t.listStatuses()
	}
	status.Conditions = setConditions(status.Conditions, result, o.now)
	return status, after
}

// outcomeOf is the outcome of an Eviction as far as its responders do not decide it.
func outcomeOf(
	o observation, e, current *evictionapi.Eviction, invalid string, t turn,
) (result outcome, after time.Duration) {
	ended := o.pod == podGone || o.pod == podTerminal
	active := t.indexActive()
	switch {
	case e != current:
		message := fmt.Sprintf("Eviction %s has the same target, and came first.", current.Name)
		return failedBy(evictionapi.ReasonEvictionInvalid, message), 0
	case ended && active >= 0 && t.statuses[t.targets[active].Name].CompletionTime == nil && o.endedFor < reportGrace:
		return awaitingOutcome(), reportGrace - o.endedFor
	case o.pod == podGone:
		return evictedBy(evictionapi.ReasonPodDeleted, "The pod was deleted."), 0
	case o.pod == podTerminal:
		return evictedBy(evictionapi.ReasonPodTerminal, "The pod has reached a terminal phase."), 0
	case !slices.ContainsFunc(o.requests, isActive):
		return failedBy(evictionapi.ReasonCanceledDueToNoRequesters, canceledMessage), 0
	case invalid != "":
		return failedBy(evictionapi.ReasonEvictionInvalid, invalid), 0
	default:
		return awaitingOutcome(), 0
	}
}

// mergeRequesters returns the requesters of old and of the requests, by name. One that has no request left counts as
// withdrawn. Where there are more than the API server keeps, those that have withdrawn are dropped first.
func mergeRequesters(old []evictionapi.Requester, requests []*evictionapi.EvictionRequest) []evictionapi.Requester {
	intents := map[string]string{}
	for _, r := range old {
		intents[r.Name] = evictionapi.IntentWithdrawn
	}
	for _, r := range requests {
		if isActive(r) {
			intents[r.Spec.Requester] = evictionapi.IntentEviction
		} else if intents[r.Spec.Requester] == "" {
			intents[r.Spec.Requester] = evictionapi.IntentWithdrawn
		}
	}
	var all []evictionapi.Requester
	for name, intent := range intents {
		all = append(all, evictionapi.Requester{Name: name, Intent: intent})
	}
	slices.SortFunc(all, func(a, b evictionapi.Requester) int { // Eviction sorts before Withdrawn
		return cmp.Or(cmp.Compare(a.Intent, b.Intent), cmp.Compare(a.Name, b.Name))
	})
	all = all[:min(len(all), maxRequesters)]
	slices.SortFunc(all, func(a, b evictionapi.Requester) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
