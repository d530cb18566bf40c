// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/internal/tier"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// delay is how late everything comes that the two controllers read or write, at most.
const delay = 150 * time.Millisecond

// mostStops bounds how often people stop a rollout: an attempt that is revoked by that is put off for longer each time.
const mostStops = 5

// R-RO-01, R-RO-05: two controllers work at the same time, and no Lease keeps either from it. All that they read and write is late by a random time, and
// each is killed around a write that is drawn, and followed by another one. The rollout ends as an undisturbed one, with one attempt and one cordon for
// each node. A second rollout is paused, aborted and resumed at random moments besides (R-RO-19, R-RO-20, R-RO-32): each node is changed once. No
// version of the ledger breaks the cap, nor do cordons.
func TestTwoControllersAtRandom(t *testing.T) {
	t.Parallel()
	o := rolloutstage.Options{
		Nodes: 4, Cap: 2, PodsPerNode: 2, Verify: 100 * time.Millisecond, Spread: 200 * time.Millisecond,
	}
	if tier.RunsWhole(t) {
		o.Nodes, o.Cap = 8, 3
	}
	f := newFleet(t, o)
	r := draws(t)
	must(t, f.Begin(t.Context(), "v2", func(s *v1alpha1.RolloutSpec) { s.RetryAfter = &metav1.Duration{Duration: time.Second} }))
	kills, _ := f.twoAtRandom(r, "v2", false)
	if diff := cmp.Diff(f.once(), f.state("v2")); diff != "" {
		t.Errorf("R-RO-05: two controllers that were killed %d times have brought the fleet elsewhere than one alone (-want +got):\n%s", kills, diff)
	}
	must(t, f.Turn(t.Context(), "v3"))
	more, stops := f.twoAtRandom(r, "v3", true)
	if diff := cmp.Diff(f.once().Runs, f.state("v3").Runs); diff != "" {
		t.Errorf("R-RO-20: after %d pauses and aborts the fleet is elsewhere (-want +got):\n%s", stops, diff)
	}
	if kills+more == 0 || stops == 0 {
		t.Errorf("%d kills and %d stops: nothing is proven without one of each", kills+more, stops)
	}
	t.Logf("%d kills; %d kills with %d pauses and aborts", kills, more, stops)
}

// mortal is a controller that is killed around one of its writes.
func (f *fleet) mortal(r *rand.Rand) *rolloutstage.Process {
	f.t.Helper()
	return f.spawn(rolloutstage.Task{Stop: 1 + r.IntN(40), Sent: r.IntN(2) == 0, Delay: delay, Seed: r.Uint64()})
}

// twoAtRandom has two controllers at a time until a rollout is over. People stop it now and then, if they are asked to, and resume it.
func (f *fleet) twoAtRandom(r *rand.Rand, revision string, people bool) (kills, stops int) {
	f.t.Helper()
	both := [2]*rolloutstage.Process{f.mortal(r), f.mortal(r)}
	defer func() { both[0].Kill(); both[1].Kill() }()
	dies := func(i int, e rolloutstage.Event, ok bool) {
		must(f.t, both[i].Fault(e, ok))
		if e.Kind == rolloutstage.Stopped {
			both[i].Kill()
			kills++
			both[i] = f.mortal(r)
		}
	}
	look, deadline, stopped := time.NewTicker(time.Second), time.After(stamina), false
	defer look.Stop()
	for {
		select {
		case e, ok := <-both[0].Events:
			dies(0, e, ok)
		case e, ok := <-both[1].Events:
			dies(1, e, ok)
		case <-look.C:
			if f.Completed(f.t.Context(), revision) == nil {
				return kills, stops
			}
			switch {
			case !people || stops > 0 && r.IntN(3) > 0:
			case !stopped && f.stands(): // it came too early, and was refused
				stopped = f.stopsOrResumes(r, true)
			case stopped || stops < mostStops:
				stopped = f.stopsOrResumes(r, stopped)
				stops += map[bool]int{true: 1}[stopped]
			}
		case <-deadline:
			f.t.Fatalf("the rollout of %s is not over after %s and %d kills: %v", revision, stamina, kills, f.Completed(f.t.Context(), revision))
		}
	}
}

// stands reports whether the rollout shows that it is stopped.
func (f *fleet) stands() bool {
	f.t.Helper()
	is, err := f.Rollout(f.t.Context())
	must(f.t, err)
	return is.Status.Phase == v1alpha1.RolloutPhase(rollout.Paused) || is.Status.Phase == v1alpha1.RolloutPhase(rollout.Aborted)
}

// stopsOrResumes asks for the one or the other, and waits for neither: the next request may overtake it.
func (f *fleet) stopsOrResumes(r *rand.Rand, stopped bool) bool {
	f.t.Helper()
	do := rollout.Resume
	if !stopped {
		do = []rollout.Do{rollout.Pause, rollout.Abort}[r.IntN(2)]
	}
	_, err := f.Ask(f.t.Context(), v1alpha1.Verb{Do: v1alpha1.Do(do)})
	must(f.t, err)
	return !stopped
}
