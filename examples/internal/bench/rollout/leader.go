// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

const (
	leaseName   = "leader"
	takeoverBar = time.Second
)

// An election is one way in which leaders are found.
type election struct {
	prefix string // of the names of its lines
	about  string
	task   rolloutstage.Task
	kills  int
}

// elections are client-go's elector with a short Lease, and what the reference controller ships, with its defaults.
func (b *bench) elections() []election {
	short := rolloutstage.Task{Lease: leaseName, LeaseFor: 2 * time.Second}
	shipped := rolloutstage.Task{Lease: leaseName, LeaseFor: 15 * time.Second, Member: true}
	renew := rolloutstage.MemberTiming(shipped.LeaseFor).Renew
	all := []election{
		{prefix: "R5.", task: short, kills: 10, about: fmt.Sprintf(
			"by the elector of client-go, which asks every %v to %v", short.LeaseFor/8, short.LeaseFor*22/80)},
		{prefix: "R5.shipped-", task: shipped, kills: 5, about: fmt.Sprintf(
			"by package identity with the timing of the reference controller, which renews every %v and asks every %v at least", renew, renew/2)},
	}
	for i := range all {
		if b.Quick {
			all[i].kills = 2
		}
	}
	return all
}

// A takeover is what the death of a leader costs, each from the moment of the kill.
type takeover struct{ elected, admitted time.Duration }

// leader is R5.
func (b *bench) leader(ctx context.Context) error {
	o := rolloutstage.Options{Nodes: 120, Cap: 4, PodsPerNode: 2, Verify: time.Second, Resident: true}
	if b.Quick {
		o.Nodes = 30
	}
	for _, e := range b.elections() {
		err := stage(ctx, o, func(f *fleet) error {
			all, last, err := f.takeovers(ctx, e)
			if err != nil {
				return err
			}
			if err := f.completed(ctx, last, "v2"); err != nil {
				return err
			}
			b.printLeader(o, e, all, f.Truth.Report())
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// takeovers kills one leader after the other while a rollout goes on, and returns the one that lives.
func (f *fleet) takeovers(ctx context.Context, by election) (all []takeover, leader *rolloutstage.Process, err error) {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	leases := coordinationv1.SchemeGroupVersion.WithResource("leases")
	seen, err := f.look(watching, v1alpha1.NodeShadowsResource, v1alpha1.DisruptionLedgersResource, leases)
	if err != nil {
		return nil, nil, err
	}
	candidate := func(i int) (*rolloutstage.Process, error) {
		task := by.task
		task.Holder = fmt.Sprintf("candidate-%d", i)
		return f.spawn(ctx, task)
	}
	if leader, err = candidate(0); err != nil {
		return nil, nil, err
	}
	if _, err := leader.Await(ctx, rolloutstage.Leads, patience); err != nil {
		return nil, nil, err
	}
	if err := f.Begin(ctx, "v2", nil); err != nil {
		return nil, nil, err
	}
	for i := range by.kills {
		next, err := candidate(i + 1)
		if err != nil {
			return nil, nil, err
		}
		t, err := f.takeover(ctx, seen, leader)
		if err != nil {
			return nil, nil, fmt.Errorf("leader %d: %w", i, err)
		}
		fmt.Fprintf(os.Stderr, "  killed: the next one leads after %s, admits after %s\n", runner.Show(t.elected), runner.Show(t.admitted))
		all, leader = append(all, t), next
	}
	return all, leader, nil
}

// takeover kills the leader when a node verifies. That one will have ended when another one leads, so that what is waited for is a leader and not
// a node.
func (f *fleet) takeover(ctx context.Context, seen <-chan sighting, leader *rolloutstage.Process) (t takeover, err error) {
	if err := drop(seen); err != nil {
		return t, err
	}
	_, err = until(ctx, seen, patience, func(s sighting) bool {
		return s.resource == v1alpha1.NodeShadowsResource.Resource && protocol.Phase(s.text("status", "phase")) == protocol.PhaseVerifying
	})
	if err != nil {
		return t, fmt.Errorf("no node verifies: %w", err)
	}
	lease, err := f.Core.CoordinationV1().Leases(metav1.NamespaceDefault).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil {
		return t, err
	}
	dead := ptr.Deref(lease.Spec.HolderIdentity, "")
	at := time.Now()
	leader.Kill()
	l, err := f.Ledger(ctx)
	if err != nil {
		return t, err
	}
	if int(l.Epoch) >= f.Nodes {
		return t, errOver
	}
	s, err := until(ctx, seen, patience, func(s sighting) bool {
		if s.resource == "leases" && s.object.GetName() == leaseName && t.elected == 0 {
			if now := s.text("spec", "holderIdentity"); now != "" && now != dead {
				t.elected = s.at.Sub(at)
			}
		}
		return s.resource == v1alpha1.DisruptionLedgersResource.Resource && s.number("spec", "epoch") > int64(l.Epoch)
	})
	if err != nil {
		return t, fmt.Errorf("no node is admitted: %w", err)
	}
	t.admitted = s.at.Sub(at)
	return t, nil
}

// drop takes what was seen so far.
func drop(seen <-chan sighting) error {
	for {
		select {
		case s := <-seen:
			if s.err != nil {
				return s.err
			}
		default:
			return nil
		}
	}
}

func (b *bench) printLeader(o rolloutstage.Options, by election, all []takeover, shown rolloutstage.Shown) {
	elected := runner.Each(all, func(t takeover) time.Duration { return t.elected })
	over := runner.Each(all, func(t takeover) time.Duration { return t.admitted - by.task.LeaseFor })
	own := runner.Each(all, func(t takeover) time.Duration { return t.admitted - t.elected })
	b.Print(runner.Line{
		Name: by.prefix + "admitted", Ours: over.String(), Bar: takeoverBar.String(), Good: len(over) > 0 && over.Most() < takeoverBar,
		More: fmt.Sprintf("from the kill to the next admission, less the duration of the Lease, %v; %d kills; another one leads %s after the kill, "+
			"%s, and admits %s after that", by.task.LeaseFor, len(all), elected, by.about, own),
	})
	twice := 0
	for _, n := range shown.Cordons {
		if n > 1 {
			twice++
		}
	}
	b.Print(runner.Line{
		Name: by.prefix + "twice", Ours: fmt.Sprint(twice), Bar: "0", Good: twice == 0 && len(shown.Cordons) == o.Nodes,
		More: fmt.Sprintf("nodes that were cordoned twice, of %d that were cordoned", len(shown.Cordons)),
	})
	b.Print(runner.Line{
		Name: by.prefix + "broken", Ours: fmt.Sprint(len(shown.Wrong)), Bar: "0", Good: len(shown.Wrong) == 0 && shown.Slots <= o.Cap,
		More: fmt.Sprintf("versions of the ledger, and cordons, beyond the cap of %d; %d slots at most in %d versions; %v",
			o.Cap, shown.Slots, shown.Versions, shown.Wrong),
	})
}
