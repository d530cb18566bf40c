// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/evictionapi"
)

var start = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

// A world is one target with everything that writes to it, in memory.
type world struct {
	observation
	decide func(observation) decision
}

func newWorld(responders ...evictionapi.PodResponder) *world {
	w := &world{decide: decideWrites}
	w.target = drain.PodRef{Namespace: "shop", Name: "web", UID: "uid-web"}
	w.pod, w.now, w.responders = podRunning, start, responders
	return w
}

func ofPriority(name string, priority int32) evictionapi.PodResponder {
	return evictionapi.PodResponder{Name: name, Priority: &priority}
}

func (w *world) request(requester, intent string) *evictionapi.EvictionRequest {
	r := &evictionapi.EvictionRequest{}
	r.Name, r.UID, r.Generation = requester, types.UID("uid-"+requester), 1
	r.Spec = evictionapi.EvictionRequestSpec{Requester: requester, Intent: intent}
	w.requests = append(w.requests, r)
	return r
}

// settle applies decisions until there is nothing more to write. It returns the last one.
func (w *world) settle() (decision, error) {
	for range 10 {
		d := w.decide(w.observation)
		if d.create == nil && len(d.labels)+len(d.statuses)+len(d.requests)+len(d.remove) == 0 {
			return d, nil
		}
		if err := w.apply(d); err != nil {
			return d, err
		}
	}
	return decision{}, errors.New("the decisions do not come to an end")
}

// apply is the API server: it refuses what the rules of the API do not allow.
func (w *world) apply(d decision) error {
	if d.create != nil {
		e := *d.create
		e.Name = fmt.Sprintf("pod-%d-web", len(w.evictions)+1)
		e.UID, e.Generation, e.CreationTimestamp = types.UID(e.Name), 1, metav1.NewTime(w.now)
		w.evictions = append(slices.Clone(w.evictions), &e)
	}
	for _, change := range d.statuses {
		if err := checkChange(w.evictions[w.indexOf(change)].Status, change.to.Status, w.now); err != nil {
			return err
		}
	}
	for _, change := range slices.Concat(d.labels, d.statuses) {
		w.evictions[w.indexOf(change)] = change.to
	}
	for _, r := range d.requests {
		i := slices.IndexFunc(w.requests, func(old *evictionapi.EvictionRequest) bool { return old.UID == r.UID })
		w.requests[i] = r
	}
	for _, e := range d.remove {
		w.evictions = slices.DeleteFunc(w.evictions, func(old *evictionapi.Eviction) bool { return old.UID == e.UID })
	}
	return nil
}

func (w *world) indexOf(change evictionChange) int {
	return slices.IndexFunc(w.evictions, func(e *evictionapi.Eviction) bool { return e.UID == change.to.UID })
}

// checkChange holds the invariants of a status, and of a write to it.
func checkChange(from, to evictionapi.EvictionStatus, now time.Time) error {
	active := 0
	for _, r := range to.TargetResponders {
		if r.State == evictionapi.StateActive {
			active++
		}
	}
	if active > 1 {
		return fmt.Errorf("%d responders are Active", active)
	}
	if len(to.TargetResponders) != len(to.Responders) {
		return errors.New("the lists of responders differ in length")
	}
	if isFinal(from.Conditions) && !isFinal(to.Conditions) {
		return errors.New("a final condition was reverted")
	}
	return checkStates(from, to, now)
}

// checkStates holds the rules of how the state of a responder may change.
func checkStates(from, to evictionapi.EvictionStatus, now time.Time) error {
	old := newTurn(from)
	for _, r := range newTurn(to).targets {
		i := slices.IndexFunc(old.targets, func(o evictionapi.TargetResponder) bool { return o.Name == r.Name })
		if i < 0 {
			continue
		}
		before, status := old.targets[i].State, old.statuses[r.Name]
		silent, _ := isSilent(status, now)
		switch {
		case before == evictionapi.StateActive && r.State == evictionapi.StateActive && silent:
			return fmt.Errorf("%s is silent and stays Active", r.Name)
		case before == evictionapi.StateActive && r.State == evictionapi.StateInterrupted && !silent &&
			!isFinal(to.Conditions):
			return fmt.Errorf("%s is interrupted before its deadline", r.Name)
		case before != evictionapi.StateActive && before != evictionapi.StateInactive && r.State != before:
			return fmt.Errorf("%s was %s and is %s", r.Name, before, r.State)
		}
	}
	return nil
}

// write changes the status of the Active responder, as itself does.
func (w *world) write(change func(*evictionapi.ResponderStatus)) {
	for i, e := range w.evictions {
		t := newTurn(e.Status)
		active := t.indexActive()
		if active < 0 {
			continue
		}
		to := *e
		to.Status.Responders = t.listStatuses()
		change(&to.Status.Responders[active])
		w.evictions = slices.Clone(w.evictions)
		w.evictions[i] = &to
	}
}

func (w *world) beat() {
	w.write(func(r *evictionapi.ResponderStatus) { t := metav1.NewTime(w.now); r.HeartbeatTime = &t })
}

func (w *world) complete() {
	w.write(func(r *evictionapi.ResponderStatus) { t := metav1.NewTime(w.now); r.CompletionTime = &t })
}

func (w *world) states() string {
	var all []string
	for _, r := range newTurn(w.evictions[len(w.evictions)-1].Status).targets {
		all = append(all, r.Name+"="+r.State)
	}
	return fmt.Sprint(all)
}

func (w *world) mustSettle(t *testing.T) decision {
	t.Helper()
	d, err := w.settle()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func wantStates(t *testing.T, w *world, want string) {
	t.Helper()
	if got := w.states(); got != want {
		t.Errorf("the states are %s, want %s", got, want)
	}
}

// A responder that is silent for 20 minutes is interrupted; a heartbeat gives it 20 more. After the last one the
// eviction has failed.
func TestHeartbeatDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(ofPriority("acme.io/a", 10000))
	w.request("acme.io/r", evictionapi.IntentEviction)
	if d := w.mustSettle(t); d.after != heartbeatDeadline {
		t.Errorf("the next look is after %s, want %s", d.after, heartbeatDeadline)
	}
	w.now = w.now.Add(19 * time.Minute)
	w.beat()
	w.now = w.now.Add(19 * time.Minute)
	if d := w.mustSettle(t); d.after != time.Minute {
		t.Errorf("the next look is after %s, want a minute", d.after)
	}
	wantStates(t, w, "[acme.io/a=Active imperative-eviction.k8s.io/evictor=Inactive]")
	w.now = w.now.Add(time.Minute)
	w.mustSettle(t)
	wantStates(t, w, "[acme.io/a=Interrupted imperative-eviction.k8s.io/evictor=Active]")
	w.now = w.now.Add(20 * time.Minute)
	w.mustSettle(t)
	wantStates(t, w, "[acme.io/a=Interrupted imperative-eviction.k8s.io/evictor=Interrupted]")
	if got := copyOutcome(w.evictions[0]).failedReason; got != evictionapi.ReasonNoFurtherResponder {
		t.Errorf("the reason is %s", got)
	}
	before := len(w.evictions)
	w.now = w.now.Add(time.Hour)
	w.mustSettle(t)
	if len(w.evictions) != before {
		t.Error("an eviction that has failed was begun again without a new intent")
	}
}

// The last responder has completed: while the pod terminates, the eviction has not failed.
func TestTerminatingPodIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.request("acme.io/r", evictionapi.IntentEviction)
	w.mustSettle(t)
	w.pod = podTerminating
	w.complete()
	w.mustSettle(t)
	wantStates(t, w, "[imperative-eviction.k8s.io/evictor=Completed]")
	if copyOutcome(w.evictions[0]).isFinal() {
		t.Error("the eviction is final before the pod is gone")
	}
	w.pod = podGone
	w.mustSettle(t)
	if got := copyOutcome(w.evictions[0]); got.evictedReason != evictionapi.ReasonPodDeleted || got.failed {
		t.Errorf("the outcome is %+v", got)
	}
}

// A responder whose pod is gone has 10 s to write its completionTime.
func TestResponderReportsAfterPodIsGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(*world)
		want string
	}{
		"it reports":      {func(w *world) { w.complete() }, "Completed"},
		"it says nothing": {func(w *world) { w.endedFor = reportGrace }, "Interrupted"},
	} {
		w := newWorld(ofPriority("acme.io/a", 10000))
		w.request("acme.io/r", evictionapi.IntentEviction)
		w.mustSettle(t)
		w.pod = podGone
		if d := w.mustSettle(t); d.after != reportGrace {
			t.Errorf("%s: the next look is after %s", name, d.after)
		}
		wantStates(t, w, "[acme.io/a=Active imperative-eviction.k8s.io/evictor=Inactive]")
		c.act(w)
		w.mustSettle(t)
		wantStates(t, w, "[acme.io/a="+c.want+" imperative-eviction.k8s.io/evictor=Inactive]")
	}
}

// Over 100 requesters, those that have withdrawn are dropped first.
func TestWithdrawnRequestersAreDroppedFirst(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for i := range 60 {
		w.request(fmt.Sprintf("acme.io/a%02d", i), evictionapi.IntentWithdrawn)
		w.request(fmt.Sprintf("acme.io/b%02d", i), evictionapi.IntentEviction)
	}
	w.mustSettle(t)
	count := map[string]int{}
	for _, r := range w.evictions[0].Status.Requesters {
		count[r.Intent]++
	}
	if count[evictionapi.IntentEviction] != 60 || count[evictionapi.IntentWithdrawn] != 40 {
		t.Errorf("the requesters are %v, want 60 and 40", count)
	}
}

// A request that is being deleted and is held by a finalizer counts as withdrawn.
func TestDeletedRequestIsWithdrawn(t *testing.T) {
	t.Parallel()
	w := newWorld()
	r := w.request("acme.io/r", evictionapi.IntentEviction)
	w.mustSettle(t)
	deleted := *w.requests[0]
	now := metav1.NewTime(w.now)
	deleted.DeletionTimestamp, deleted.Finalizers = &now, []string{"acme.io/hold"}
	w.requests[0] = &deleted
	w.mustSettle(t)
	if got := copyOutcome(w.evictions[0]).failedReason; got != evictionapi.ReasonCanceledDueToNoRequesters {
		t.Errorf("the reason is %s with %v", got, r.Name)
	}
}

// Responders of one priority are ordered by the labels of their domains from the top one down, then by their keys.
func TestOrderOfResponders(t *testing.T) {
	t.Parallel()
	all := listResponders([]evictionapi.PodResponder{
		ofPriority("b.acme.io/x", 5000), ofPriority("acme.io/y", 5000), ofPriority("zeta.com/x", 5000),
		ofPriority("acme.io/x", 5000), ofPriority("zz.io/first", 9000),
	})
	var got []string
	for _, r := range all {
		got = append(got, r.Name)
	}
	want := []string{
		"zz.io/first", "zeta.com/x", "acme.io/x", "acme.io/y", "b.acme.io/x", evictionapi.ImperativeEvictor,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}
