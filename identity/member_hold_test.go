// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

// TestAQuietHour is R-ID-21: one PUT for each renewal, and no GET, however long it goes on.
func TestAQuietHour(t *testing.T) {
	inBubble(t, func(b *bed) {
		p := b.process("h").start()
		b.passes(time.Second)
		before := b.lease()
		b.server.ForgetRequests()
		b.passes(time.Hour)
		n := p.asked()
		if n[identitytest.Update] < 345 || n[identitytest.Update] > 360 || len(n) != 1 {
			b.Errorf("R-ID-21: in an hour %v, want 346 to 360 updates (10 s to 10.4 s) and nothing else", n)
		}
		after := b.lease()
		if !before.Spec.RenewTime.Before(after.Spec.RenewTime) || !before.Spec.AcquireTime.Equal(after.Spec.AcquireTime) ||
			*before.Spec.LeaseTransitions != *after.Spec.LeaseTransitions {
			b.Errorf("from %v to %v", before.Spec, after.Spec)
		}
		p.holds(1)
	})
}

// ends demands that the work has ended with ErrLost at a time since a moment.
func (p *process) ends(since time.Time, least, most time.Duration) {
	p.bed.Helper()
	for len(p.ended()) == 0 && time.Since(since) < most+time.Second {
		p.bed.passes(50 * time.Millisecond)
	}
	took := time.Since(since)
	if causes := p.ended(); len(causes) != 1 || !errors.Is(causes[0], identity.ErrLost) || took < least || took > most+50*time.Millisecond {
		p.bed.Fatalf("the work's context has ended with %v after %s, want ErrLost after %s to %s", causes, took, least, most)
	}
	if e, held := p.member.Epoch(); held && e == p.epochs[0] {
		p.bed.Fatal("the work has ended, and Epoch says that its hold goes on")
	}
}

func (p *process) ended() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.causes)
}

func (p *process) lost(want ...identity.LossReason) {
	p.bed.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.losses, want) {
		p.bed.Errorf("losses %v, want %v", p.losses, want)
	}
}

// TestHoldEndsWithoutRenewals: whatever is wrong with the server, the work ends Hold after the last successful renewal was sent, which
// is before any observer may call the member lost; and it goes on as soon as the server is back (R-ID-15).
func TestHoldEndsWithoutRenewals(t *testing.T) {
	gateway := apierrors.NewGenericServerResponse(http.StatusNotFound, "PUT", schema.GroupResource{Resource: "leases"}, name, "nginx", 0, true)
	for what, fault := range map[string]identitytest.Fault{
		"no answer":              {Hang: true},
		"no answer, carried out": {Hang: true, Committed: true},
		"500":                    {Err: apierrors.NewInternalError(errors.New("x"))},
		"429":                    {Err: apierrors.NewTooManyRequests("x", 2)},
		"403":                    {Err: apierrors.NewForbidden(schema.GroupResource{}, name, errors.New("x"))},
		"no server":              {Err: errors.New("connection refused")},
		"404 of a gateway":       {Err: gateway},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				p := b.process("h").start()
				b.passes(time.Second)
				e := p.holds(1)
				fault.Times = -1
				renewed := b.renewal(p)
				b.server.Faults(fault)
				p.ends(renewed, 30*time.Second, 30*time.Second)
				p.lost(identity.Expired)
				b.passes(time.Minute)
				b.server.ClearFaults()
				b.passes(18 * time.Second)
				if next := p.holds(2); next.Number <= e.Number || next.Holder == e.Holder {
					b.Errorf("R-ID-15: epoch %v after %v", next, e)
				}
			})
		})
	}
}

// renewal waits for the next one, and returns when it was sent.
func (b *bed) renewal(p *process) time.Time {
	b.Helper()
	before := p.asked()[identitytest.Update]
	for range 200 {
		b.passes(100 * time.Millisecond)
		if p.asked()[identitytest.Update] > before {
			return time.Now().Add(-p.member.Status().Renewed)
		}
	}
	b.Fatal("no renewal in 20 s")
	return time.Time{}
}

// TestOneFailureIsNoLoss: each try that fails is followed by another one, and the hold goes on.
func TestOneFailureIsNoLoss(t *testing.T) {
	for what, fault := range map[string]identitytest.Fault{
		"no answer":              {Hang: true},
		"no answer, carried out": {Hang: true, Committed: true},
		"an error, carried out":  {Err: errors.New("connection reset"), Committed: true},
		"503, three times":       {Err: apierrors.NewServiceUnavailable("x"), Times: 3},
		"a slow server":          {Delay: 9 * time.Second, Times: -1},
		"404 of a gateway":       {Err: apierrors.NewGenericServerResponse(404, "PUT", schema.GroupResource{}, name, "x", 0, true)},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				p := b.process("h").start()
				b.passes(time.Second)
				e := p.holds(1)
				b.server.Faults(fault)
				b.passes(5 * time.Minute)
				if p.holds(1) != e {
					b.Error("the epoch has changed")
				}
				if err := p.member.Healthy(); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// TestHoldCountsFromTheSending: a renewal that took long counts from before it was sent.
func TestHoldCountsFromTheSending(t *testing.T) {
	inBubble(t, func(b *bed) {
		p := b.process("h").start()
		b.passes(time.Second)
		b.server.Faults(identitytest.Fault{Operation: identitytest.Update, Delay: 9 * time.Second})
		b.renewal(p)
		sent := time.Now()
		b.passes(9*time.Second + 100*time.Millisecond)
		b.server.Stop()
		p.ends(sent, 29*time.Second, 30*time.Second)
	})
}

// TestSuspendedMachine notices within a second after it is resumed that its time is up, and Epoch at once. A request that hung all the while
// changes nothing.
func TestSuspendedMachine(t *testing.T) {
	for _, hung := range []bool{false, true} {
		inBubble(t, func(b *bed) {
			clock := identitytest.NewClock(0, 1)
			p := b.processOn("h", clock).start()
			b.passes(time.Second)
			b.renewal(p)
			if hung {
				b.server.Faults(identitytest.Fault{Hang: true, Times: -1})
				b.passes(11 * time.Second)
			}
			clock.Suspend()
			b.passes(time.Hour)
			if _, held := p.member.Epoch(); held {
				b.Error("Epoch says that the Lease is held an hour after the last renewal")
			}
			resumed := time.Now()
			clock.Resume()
			p.ends(resumed, 0, time.Second)
			p.lost(identity.Expired)
		})
	}
}

// TestWallClockDoesNotMatter: nothing is decided by it, also where it stands in another century.
func TestWallClockDoesNotMatter(t *testing.T) {
	for _, offset := range []time.Duration{-100 * 365 * 24 * time.Hour, 100 * 365 * 24 * time.Hour} {
		inBubble(t, func(b *bed) {
			p := b.processOn("h", identitytest.NewClock(offset, 1)).start()
			b.passes(time.Hour)
			p.holds(1)
			second := b.process("two").start()
			b.passes(time.Minute)
			var dup *identity.DuplicateError
			if err := second.returns(); !errors.As(err, &dup) {
				b.Errorf("the second got %v, want a DuplicateError", err)
			}
			p.kill()
			third := b.process("three").start()
			b.passes(41 * time.Second)
			third.holds(1)
		})
	}
}

// TestForeignHolderIsNeverRenewed is invariant I3: a Lease in which another one is found is lost at once, and not written.
func TestForeignHolderIsNeverRenewed(t *testing.T) {
	for what, c := range map[string]struct {
		change func(b *bed)
		want   identity.LossReason
	}{
		"taken":   {func(b *bed) { b.edit(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("m_thief") }) }, identity.Taken},
		"emptied": {func(b *bed) { b.edit(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil }) }, identity.Taken},
		"deleted": {func(b *bed) { _ = b.admin().Delete(b.Context(), name, metav1.DeleteOptions{}) }, identity.Deleted},
		"made anew": {func(b *bed) {
			l := b.lease()
			_ = b.admin().Delete(b.Context(), name, metav1.DeleteOptions{})
			l.UID, l.ResourceVersion = "", ""
			_, _ = b.admin().Create(b.Context(), l, metav1.CreateOptions{})
		}, identity.Deleted},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				p := b.process("h").start()
				b.passes(time.Second)
				e := p.holds(1)
				at := b.renewal(p)
				c.change(b)
				p.ends(at, 0, 10500*time.Millisecond)
				p.lost(c.want)
				if what == "taken" {
					b.passes(39 * time.Second)
					p.waits(identity.Watching)
					if l := b.lease(); *l.Spec.HolderIdentity != "m_thief" {
						b.Errorf("holder %q, want the foreign one left alone", *l.Spec.HolderIdentity)
					}
				}
				b.passes(time.Minute)
				if next := p.holds(2); next.Number <= e.Number {
					b.Errorf("epoch %d after %d", next.Number, e.Number)
				}
			})
		})
	}
}

// TestEditsOfOthersStay: somebody who edits the Lease while it is held disturbs nothing and keeps what he added. What he took away of ours is
// back with the next renewal: without its label no view would see the Lease (R-ID-05).
func TestEditsOfOthersStay(t *testing.T) {
	inBubble(t, func(b *bed) {
		p := b.process("h", func(s *identity.Spec) {
			s.Labels, s.Annotations = map[string]string{"team": "a"}, map[string]string{"note": "n"}
			s.Owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"}
		}).start()
		b.passes(15 * time.Second)
		e, before := p.holds(1), b.lease()
		for range 20 {
			b.edit(func(l *coordinationv1.Lease) {
				l.Labels, l.Annotations = map[string]string{"theirs": l.ResourceVersion}, map[string]string{"theirs": "x"}
				l.OwnerReferences, l.Spec.LeaseDurationSeconds = nil, nil
			})
			b.passes(11 * time.Second)
			after := b.lease()
			if p.holds(1) != e || after.Labels["theirs"] == "" || after.Annotations["theirs"] != "x" {
				b.Fatalf("the Lease is %v, want what somebody has added kept", after)
			}
			delete(after.Labels, "theirs")
			delete(after.Annotations, "theirs")
			if !maps.Equal(after.Labels, before.Labels) || !maps.Equal(after.Annotations, before.Annotations) ||
				len(after.OwnerReferences) != 1 || ptr.Deref(after.Spec.LeaseDurationSeconds, 0) != 3600 {
				b.Fatalf("R-ID-05: the Lease is %v, want all that was there before: %v", after, before)
			}
		}
		if n := p.asked()[identitytest.Get]; n != 1+20 {
			b.Errorf("%d reads, want one at the start and one for each edit", n)
		}
	})
}

// TestWorkOfALostHoldIsWaitedFor: the next hold begins after the work of the one before has returned.
func TestWorkOfALostHoldIsWaitedFor(t *testing.T) {
	inBubble(t, func(b *bed) {
		p := b.process("h")
		p.linger = time.Hour
		p.start()
		b.passes(time.Second)
		b.edit(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil })
		b.passes(30 * time.Minute)
		if n := p.count(); n != 1 || len(p.ended()) != 1 {
			b.Fatalf("work was called %d times, its context has ended %d times, want 1 and 1", n, len(p.ended()))
		}
		p.waits(identity.Acquiring)
		b.passes(time.Hour)
		p.holds(2)
	})
}

// TestLeaseIsKeptWhileWorkDrains: after the end of ctx it is renewed until the work has returned, and released after that.
func TestLeaseIsKeptWhileWorkDrains(t *testing.T) {
	inBubble(t, func(b *bed) {
		p := b.process("h")
		p.linger = 5 * time.Minute
		p.start()
		b.passes(time.Second)
		p.cancel()
		b.passes(4 * time.Minute)
		p.holds(1)
		if ago := time.Since(b.lease().Spec.RenewTime.Time); ago > 11*time.Second {
			b.Errorf("the Lease was renewed %s ago", ago)
		}
		b.passes(2 * time.Minute)
		b.noLease()
		if err := p.returns(); err != nil {
			b.Error(err)
		}
	})
}

// TestWhatRunReturns is the table in its comment.
func TestWhatRunReturns(t *testing.T) {
	boom := errors.New("boom")
	for what, c := range map[string]struct {
		work func(context.Context, identity.Epoch) error
		stop bool
		want error
	}{
		"work that is done":               {func(context.Context, identity.Epoch) error { return nil }, false, nil},
		"work that fails":                 {func(context.Context, identity.Epoch) error { return boom }, false, boom},
		"work that stops":                 {func(ctx context.Context, _ identity.Epoch) error { <-ctx.Done(); return ctx.Err() }, true, nil},
		"work that fails to stop":         {func(ctx context.Context, _ identity.Epoch) error { <-ctx.Done(); return boom }, true, boom},
		"no work":                         {nil, true, nil},
		"work with a deadline of its own": {func(context.Context, identity.Epoch) error { return context.DeadlineExceeded }, false, context.DeadlineExceeded},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				p := b.process("h")
				ctx, cancel := context.WithCancel(b.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- p.member.Run(ctx, c.work) }()
				synctest.Wait()
				if c.stop {
					if err := p.member.Run(ctx, nil); !errors.Is(err, identity.ErrRunning) {
						b.Errorf("the second Run returned %v, want ErrRunning", err)
					}
					cancel()
				}
				if err := <-done; !errors.Is(err, c.want) || c.want == nil && err != nil {
					b.Errorf("Run returned %v, want %v", err, c.want)
				}
				b.noLease()
				p.waits(identity.Stopped)
			})
		})
	}
}
