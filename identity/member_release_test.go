// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

// TestReleaseDeletesTheVersionWritten is R-ID-16 and invariant I7: the deletion has the UID and the resourceVersion as precondition.
func TestReleaseDeletesTheVersionWritten(t *testing.T) {
	inBubble(t, func(b *bed) {
		p := b.process("h").start()
		b.passes(time.Minute)
		l := b.lease()
		if err := p.stop(); err != nil {
			b.Error(err)
		}
		b.noLease()
		requests := b.server.Requests()
		last := requests[len(requests)-1]
		if p := last.Preconditions; p == nil || ptr.Deref(p.UID, "") != l.UID || ptr.Deref(p.ResourceVersion, "") != l.ResourceVersion {
			b.Errorf("R-ID-16: deleted with %+v, want UID %q and resourceVersion %q", p, l.UID, l.ResourceVersion)
		}
	})
}

// TestReleaseOfWhatHasChanged is R-ID-16: an edit does not keep the Lease, another holder or another Lease of the name does.
func TestReleaseOfWhatHasChanged(t *testing.T) {
	for what, c := range map[string]struct {
		change func(b *bed)
		stays  bool
	}{
		"edited":  {func(b *bed) { b.edit(func(l *coordinationv1.Lease) { l.Labels = nil }) }, false},
		"taken":   {func(b *bed) { b.edit(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("m_thief") }) }, true},
		"deleted": {func(b *bed) { _ = b.admin().Delete(b.Context(), name, metav1.DeleteOptions{}) }, false},
		"made anew by another": {func(b *bed) {
			_ = b.admin().Delete(b.Context(), name, metav1.DeleteOptions{})
			b.store()
		}, true},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				p := b.process("h").start()
				b.passes(time.Second)
				c.change(b)
				if err := p.stop(); err != nil {
					b.Error(err)
				}
				if got := len(b.server.Leases()) == 1; got != c.stays {
					b.Errorf("R-ID-16: the Lease is there: %v, want %v", got, c.stays)
				}
			})
		})
	}
}

// TestReleaseIsBounded is R-ID-16 and invariant I8: whatever the server does, Run returns within Stop after the work has; a failure in
// between is overcome.
func TestReleaseIsBounded(t *testing.T) {
	for what, c := range map[string]struct {
		fault identitytest.Fault
		stays bool
		most  time.Duration
	}{
		"no answer":           {identitytest.Fault{Hang: true, Times: -1}, true, 10 * time.Second},
		"no server":           {identitytest.Fault{Err: errors.New("connection refused"), Times: -1}, true, 10 * time.Second},
		"429 for long":        {identitytest.Fault{Err: apierrors.NewTooManyRequests("x", 3600), Times: -1}, true, 10 * time.Second},
		"conflicts for ever":  {identitytest.Fault{Operation: identitytest.Delete, Err: apierrors.NewConflict(coordinationv1.Resource("leases"), name, errors.New("x")), Times: -1}, true, 10 * time.Second},
		"500, once":           {identitytest.Fault{Err: apierrors.NewInternalError(errors.New("x"))}, false, time.Second},
		"500, three times":    {identitytest.Fault{Err: apierrors.NewInternalError(errors.New("x")), Times: 3}, false, 2 * time.Second},
		"the answer got lost": {identitytest.Fault{Err: errors.New("reset"), Committed: true}, false, time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				p := b.process("h").start()
				b.passes(time.Second)
				b.server.Faults(c.fault)
				begun := time.Now()
				if err := p.stop(); err != nil {
					b.Error(err)
				}
				if took := time.Since(begun); took > c.most {
					b.Errorf("R-ID-16: Run returned after %s, want at most %s", took, c.most)
				}
				if got := len(b.server.Leases()) == 1; got != c.stays {
					b.Errorf("R-ID-16: the Lease is there: %v, want %v", got, c.stays)
				}
				p.waits(identity.Stopped)
			})
		})
	}
}

// TestStopWhileNothingIsHeld is R-ID-16: at once in every other phase, and nothing is deleted.
func TestStopWhileNothingIsHeld(t *testing.T) {
	for what, prepare := range map[string]func(b *bed){
		"watching":       func(b *bed) { b.store() },
		"backing off":    func(b *bed) { b.server.Stop() },
		"without answer": func(b *bed) { b.server.Faults(identitytest.Fault{Hang: true, Times: -1}) },
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				prepare(b)
				p := b.process("h").start()
				b.passes(3 * time.Second)
				begun := time.Now()
				if err := p.stop(); err != nil || time.Since(begun) > 0 {
					b.Errorf("R-ID-16: Run returned %v after %s, want nil at once", err, time.Since(begun))
				}
				if n := p.asked()[identitytest.Delete]; n != 0 || p.count() != 0 {
					b.Errorf("%d deletions, work called %d times", n, p.count())
				}
			})
		})
	}
}

// TestStopDuringARenewal: the renewal whose answer nobody waits for any more does not keep the Lease.
func TestStopDuringARenewal(t *testing.T) {
	for _, committed := range []bool{false, true} {
		inBubble(t, func(b *bed) {
			p := b.process("h").start()
			b.passes(time.Second)
			b.server.Faults(identitytest.Fault{Client: p.client, Operation: identitytest.Update, Hang: true, Committed: committed})
			b.passes(11 * time.Second)
			if err := p.stop(); err != nil {
				b.Error(err)
			}
			b.noLease()
		})
	}
}

// TestNothingIsReleasedThatIsNotHeld: work that returns after the time was up, before anybody has noticed.
func TestNothingIsReleasedThatIsNotHeld(t *testing.T) {
	inBubble(t, func(b *bed) {
		clock := identitytest.NewClock(0, 1)
		p := b.processOn("h", clock).start()
		b.passes(time.Second)
		clock.Suspend()
		b.passes(time.Hour)
		p.cancel()
		synctest.Wait()
		clock.Resume()
		_ = p.returns()
		if n := p.asked()[identitytest.Delete]; n != 0 {
			b.Errorf("%d deletions an hour after the hold has ended", n)
		}
	})
}

// TestKeepOnStop leaves the Lease, and the next start takes it over.
func TestKeepOnStop(t *testing.T) {
	inBubble(t, func(b *bed) {
		p := b.process("h", func(s *identity.Spec) { s.KeepOnStop = true }).start()
		b.passes(time.Second)
		before := b.lease()
		_ = p.stop()
		if after := b.lease(); after.ResourceVersion != before.ResourceVersion {
			b.Error("the Lease was written at the end")
		}
		p.start() // the same Member knows that the holder was itself
		p.holds(2)
		if b.lease().UID != before.UID {
			b.Error("the Lease is another one")
		}
	})
}
