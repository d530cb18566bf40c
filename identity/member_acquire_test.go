// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

const minute = time.Minute

// TestLeaseIsCreated is R-ID-05 and R-ID-19: a Lease that is not there is created, work starts once it is, and its labels say what it is.
func TestLeaseIsCreated(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.server.Faults(identitytest.Fault{Operation: identitytest.Create, Delay: 3 * time.Second})
		p := b.process("h").start()
		b.passes(2 * time.Second)
		if p.count() != 0 {
			b.Fatal("R-ID-19: work has started before the Lease was acknowledged")
		}
		b.passes(2 * time.Second)
		e := p.holds(1)
		l := b.lease()
		if l.Labels[identity.ComponentLabel] != "test" || l.Labels[identity.HostLabel] != "h" || l.Annotations[identity.HostAnnotation] != "h" {
			b.Errorf("R-ID-05: labels %v, annotations %v", l.Labels, l.Annotations)
		}
		if *l.Spec.LeaseDurationSeconds != 3600 || *l.Spec.LeaseTransitions != 0 || !strings.HasPrefix(*l.Spec.HolderIdentity, name+"_") {
			b.Errorf("the Lease is %v", l.Spec)
		}
		if got := l.Annotations[identity.EpochAnnotation]; got != strconv.FormatUint(e.Number, 10) || e.Number == 0 {
			b.Errorf("the Lease has epoch %q, work has %d", got, e.Number)
		}
		if got := p.epochs[0]; got != e {
			b.Errorf("work was called with %v, Epoch gives %v", got, e)
		}
	})
}

// TestRestartTakesItsLeaseAgain is R-ID-06 and R-ID-07: a process that was killed finds its Lease under the same name and UID, after it
// has watched it for Liveness; holder, transitions, acquire time and epoch show that it is another one.
func TestRestartTakesItsLeaseAgain(t *testing.T) {
	inBubble(t, func(b *bed) {
		p := b.process("h").start()
		b.passes(time.Second)
		last, before := p.holds(1), b.lease()
		for range 20 {
			p.kill()
			p = b.process("h").start()
			b.passes(40*time.Second - 1)
			p.waits(identity.Watching)
			b.passes(time.Second)
			e, l := p.holds(1), b.lease()
			if l.UID != before.UID || *l.Spec.LeaseTransitions != *before.Spec.LeaseTransitions+1 || !before.Spec.AcquireTime.Before(l.Spec.AcquireTime) {
				b.Fatalf("R-ID-07: before %v, after the restart %v", before, l)
			}
			if e.Holder == last.Holder || e.Number <= last.Number || *l.Spec.HolderIdentity == *before.Spec.HolderIdentity {
				b.Fatalf("R-ID-06: epoch %v before, %v after", last, e)
			}
			last, before = e, l
		}
	})
}

// TestWhatStandsInTheLease is R-ID-14: a Lease with whatever in it is taken over; at once if nobody is in it.
func TestWhatStandsInTheLease(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*coordinationv1.Lease)
		after  time.Duration
	}{
		"a holder":        {func(*coordinationv1.Lease) {}, 40 * time.Second},
		"nothing at all":  {func(l *coordinationv1.Lease) { l.Spec, l.Annotations = coordinationv1.LeaseSpec{}, nil }, 0},
		"an empty holder": {func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("") }, 0},
		"a holder alone":  {func(l *coordinationv1.Lease) { l.Spec = coordinationv1.LeaseSpec{HolderIdentity: ptr.To("x")} }, 40 * time.Second},
		"a far future": {func(l *coordinationv1.Lease) {
			l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(1e6 * time.Hour)))
		}, 40 * time.Second},
		"a far past":           {func(l *coordinationv1.Lease) { l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Unix(0, 0))) }, 40 * time.Second},
		"the longest duration": {func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To[int32](1<<31 - 1) }, 40 * time.Second},
		"the shortest":         {func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To[int32](1) }, 40 * time.Second},
		"garbage": {func(l *coordinationv1.Lease) {
			l.Annotations = map[string]string{identity.FingerprintAnnotation: "?", identity.EpochAnnotation: "-3"}
		}, 40 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				old := b.store(c.change)
				p := b.process("h").start()
				if c.after > 0 {
					b.passes(c.after - 1)
					p.waits(identity.Watching)
					b.passes(time.Second)
				}
				e := p.holds(1)
				if version, _ := strconv.ParseUint(old.ResourceVersion, 10, 64); e.Number <= version || e.UID != old.UID {
					b.Errorf("epoch %v of a Lease with resourceVersion %s, UID %s", e, old.ResourceVersion, old.UID)
				}
			})
		})
	}
}

// TestEpochIsMoreThanWhatStands: after a move to another server the annotation is more than the version.
func TestEpochIsMoreThanWhatStands(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.store(func(l *coordinationv1.Lease) { l.Annotations[identity.EpochAnnotation] = "1000" })
		p := b.process("h").start()
		b.passes(minute)
		if e := p.holds(1); e.Number != 1001 || b.lease().Annotations[identity.EpochAnnotation] != "1001" {
			b.Errorf("epoch %d after 1000", e.Number)
		}
	})
}

// TestDuplicateIsTold is the promise about duplicates: a living holder is left alone, and the error names both.
func TestDuplicateIsTold(t *testing.T) {
	inBubble(t, func(b *bed) {
		first := b.process("one").start()
		b.passes(minute)
		e := first.holds(1)
		second := b.process("two").start()
		second.waits(identity.Watching)
		err := second.returns()
		var dup *identity.DuplicateError
		if !errors.As(err, &dup) {
			b.Fatalf("Run returned %v, want a DuplicateError", err)
		}
		if dup.Ours.Host != "two" || dup.Theirs.Host != "one" || dup.Holder != e.Holder || dup.Key.Name != name || dup.LockFile != "" {
			b.Errorf("the error is %+v", dup)
		}
		for _, want := range []string{`"one"`, `"two"`, e.Holder, name} {
			if !strings.Contains(err.Error(), want) {
				b.Errorf("the error does not name %s: %v", want, err)
			}
		}
		if n := second.asked(); n[identitytest.Create]+n[identitytest.Update]+n[identitytest.Delete] != 0 {
			b.Errorf("the second has written: %v", n)
		}
		if first.holds(1) != e {
			b.Error("the first was disturbed")
		}
	})
}

// TestDuplicateIsWaitedFor: with WaitOnDuplicate the second takes over as soon as the first has released, and after Liveness where it was killed.
func TestDuplicateIsWaitedFor(t *testing.T) {
	for what, end := range map[string]func(*process){"released": func(p *process) { _ = p.stop() }, "killed": (*process).kill} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				first := b.process("one").start()
				b.passes(time.Second)
				e := first.holds(1)
				second := b.process("two", func(s *identity.Spec) { s.OnDuplicate = identity.WaitOnDuplicate }).start()
				b.passes(10 * minute)
				second.waits(identity.Watching)
				var dup *identity.DuplicateError
				if err := second.member.Healthy(); !errors.As(err, &dup) || dup.Theirs.Host != "one" {
					b.Errorf("Healthy returns %v, want the DuplicateError", err)
				}
				end(first)
				if what == "killed" {
					b.passes(15 * time.Second) // the end has taken 10 s
					second.waits(identity.Watching)
					b.passes(20 * time.Second)
				} else {
					b.passes(5 * time.Second)
				}
				if next := second.holds(1); next.Number <= e.Number {
					b.Errorf("epoch %d after %d", next.Number, e.Number)
				}
				if err := second.member.Healthy(); err != nil {
					b.Errorf("Healthy returns %v", err)
				}
			})
		})
	}
}

// TestEditsAreNoSignOfLife: labels that somebody else changes on a dead holder's Lease make no duplicate. They put the adoption off.
func TestEditsAreNoSignOfLife(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.store()
		p := b.process("h").start()
		for i := range 5 {
			b.passes(30 * time.Second)
			b.edit(func(l *coordinationv1.Lease) { l.Labels = map[string]string{"edit": strconv.Itoa(i)} })
		}
		b.passes(39 * time.Second)
		p.waits(identity.Watching)
		b.passes(6 * time.Second)
		p.holds(1)
		if b.lease().Labels["edit"] != "4" {
			b.Error("the label of somebody else is gone")
		}
	})
}

// TestRenewalBetweenReadAndWrite: a holder that comes back in the last moment is not overwritten.
func TestRenewalBetweenReadAndWrite(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.store()
		p := b.process("h").start()
		b.server.Faults(identitytest.Fault{Client: p.client, Operation: identitytest.Update, Do: func() {
			b.edit(func(l *coordinationv1.Lease) { l.Spec.RenewTime = ptr.To(metav1.NowMicro()) })
		}})
		b.passes(minute)
		var dup *identity.DuplicateError
		if err := p.returns(); !errors.As(err, &dup) || *b.lease().Spec.HolderIdentity != "other_1" {
			b.Errorf("Run returned %v, holder %q", err, *b.lease().Spec.HolderIdentity)
		}
	})
}

// TestCreationsCross: two that find nothing create at once; one gets it, the other sees that.
func TestCreationsCross(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.server.Faults(identitytest.Fault{Operation: identitytest.Create, Delay: time.Second, Times: 2})
		one, two := b.process("one"), b.process("two")
		one.start()
		two.start()
		b.passes(minute)
		if one.count()+two.count() != 1 || len(one.done)+len(two.done) != 1 {
			b.Errorf("work was called %d times, want once", one.count()+two.count())
		}
	})
}

// TestLostAnswersOfAcquisitions: a create or an update that was carried out without an answer is found to be ours.
func TestLostAnswersOfAcquisitions(t *testing.T) {
	for _, op := range []identitytest.Operation{identitytest.Create, identitytest.Update} {
		t.Run(string(op), func(t *testing.T) {
			inBubble(t, func(b *bed) {
				if op == identitytest.Update {
					b.store(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil })
				}
				b.server.Faults(identitytest.Fault{Operation: op, Hang: true, Committed: true})
				p := b.process("h").start()
				b.passes(11 * time.Second)
				p.holds(1)
			})
		})
	}
}

// TestServerIsAwayAtTheStart is R-ID-15: Run goes on trying, and is there within 7 s after the return.
func TestServerIsAwayAtTheStart(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.server.Stop()
		p := b.process("h").start()
		b.passes(5 * minute)
		p.waits(identity.Acquiring)
		if err := p.member.Healthy(); err == nil || p.member.Status().Err == nil {
			b.Error("R-ID-15: healthy without a server")
		}
		if n := p.asked()[identitytest.Get]; n < 40 || n > 100 {
			b.Errorf("%d requests in 5 minutes, want a back-off up to 7 s", n)
		}
		b.server.Start()
		b.passes(7 * time.Second)
		p.holds(1)
	})
}

// ofNode makes a member that asks for its Node, which owns the Lease.
func ofNode(there nodes) func(*identity.Spec) {
	return func(s *identity.Spec) {
		s.Nodes, s.Node, s.Fingerprint.NodeUID = there, "n", "u1"
		s.Owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u1"}
	}
}

// TestNodeIsGone: before each acquisition, and at no renewal, the Node is asked for. The Lease of a Node that is deleted goes with it.
func TestNodeIsGone(t *testing.T) {
	for what, c := range map[string]struct {
		uid  string
		gone bool
	}{"there": {"u1", false}, "another": {"u2", true}, "deleted": {"-", true}, "unknown": {"", false}} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				there := nodes{"n": c.uid}
				if c.uid == "-" {
					there = nodes{}
				}
				p := b.process("h", ofNode(there)).start()
				b.passes(minute)
				switch {
				case c.gone:
					if err := p.returns(); !errors.Is(err, identity.ErrNodeGone) || !strings.Contains(err.Error(), `"u1"`) {
						b.Errorf("Run returned %v, want ErrNodeGone", err)
					}
					b.noLease()
				case c.uid == "":
					p.waits(identity.Acquiring)
					b.noLease()
				default:
					p.holds(1)
					if owners := b.lease().OwnerReferences; len(owners) != 1 || owners[0].UID != "u1" {
						b.Fatalf("the owners are %v: the Lease does not go with the Node", owners)
					}
					delete(there, "n")
					b.collectGarbage()
					gone := time.Now()
					if err := p.returns(); !errors.Is(err, identity.ErrNodeGone) || time.Since(gone) > 10400*time.Millisecond {
						b.Errorf("%s after the end of its Node Run returned %v, want ErrNodeGone within a renewal", time.Since(gone), err)
					}
					b.noLease()
				}
			})
		})
	}
}

// collectGarbage deletes the Lease as the cluster does whose owner is gone.
func (b *bed) collectGarbage() {
	b.Helper()
	if err := b.admin().Delete(b.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
}

// TestComponentsOfAHost is R-ID-20 and R-ID-01: each holds a Lease of its own.
func TestComponentsOfAHost(t *testing.T) {
	inBubble(t, func(b *bed) {
		holders := map[string]string{}
		for _, component := range []string{"agent", "controller", "probe"} {
			p := b.process("h", func(s *identity.Spec) {
				s.Component, s.Name = component, identity.Name("p", component, "h")
			}).start()
			b.passes(minute)
			e, held := p.member.Epoch()
			if !held {
				b.Errorf("R-ID-20: %s does not hold its Lease: %+v", component, p.member.Status())
			}
			holders[e.Holder] = component
		}
		b.passes(minute)
		leases := b.server.Leases()
		for _, l := range leases {
			if component := l.Labels[identity.ComponentLabel]; holders[*l.Spec.HolderIdentity] != component {
				b.Errorf("R-ID-20: the Lease of %s has holder %q, which is that of %q", component, *l.Spec.HolderIdentity, holders[*l.Spec.HolderIdentity])
			}
		}
		if len(leases) != 3 || len(holders) != 3 {
			b.Errorf("R-ID-20: %d Leases with %d holders, want three of three", len(leases), len(holders))
		}
	})
}

// TestLockShowsThatTheHolderIsGone is R-ID-07: with a lock file a restart on the same host takes less than a second.
func TestLockShowsThatTheHolderIsGone(t *testing.T) {
	inBubble(t, func(b *bed) {
		path := filepath.Join(t.TempDir(), "m.lock")
		locks := func(s *identity.Spec) { s.LockFile = path }
		p := b.process("h", locks).start()
		b.passes(time.Second)
		e := p.holds(1)
		p.kill()
		p = b.process("h", locks).start()
		b.passes(time.Millisecond)
		if next := p.holds(1); next.Number <= e.Number {
			b.Errorf("epoch %d after %d", next.Number, e.Number)
		}
		p.kill()
		bare := b.process("h").start() // without the lock it knows nothing of the holder
		bare.waits(identity.Watching)
	})
}

// TestLabelsOfHosts is R-ID-04 against the server's validation.
func TestLabelsOfHosts(t *testing.T) {
	for _, host := range []string{"h", strings.Repeat("h", 63), strings.Repeat("h", 64), strings.Repeat("h", 253), "Upper_Case", "\xff\xfe"} {
		inBubble(t, func(b *bed) {
			p := b.process(host).start()
			b.passes(time.Second)
			p.holds(1)
			if got := b.lease().Annotations[identity.HostAnnotation]; got != host && got != strconv.Quote(host) {
				b.Errorf("R-ID-04: the annotation says %q of host %q", got, host)
			}
		})
	}
}
