// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

// TestWritesThatFail is R-ID-15: where reads work and writes do not, as with a full etcd or an admission policy that refuses, the back-off
// goes up to 7 s, and ends with the first write that works.
func TestWritesThatFail(t *testing.T) {
	for what, err := range map[string]error{
		"refused":   apierrors.NewForbidden(coordinationv1.Resource("leases"), name, errors.New("x")),
		"full":      apierrors.NewInternalError(errors.New("etcdserver: mvcc: database space exceeded")),
		"conflicts": apierrors.NewConflict(coordinationv1.Resource("leases"), name, errors.New("x")),
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.store(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("") })
				b.server.Faults(identitytest.Fault{Operation: identitytest.Update, Err: err, Times: -1})
				p := b.process("h").start()
				b.passes(5 * minute)
				p.waits(identity.Acquiring)
				if n := p.asked(); n[identitytest.Update] < 40 || n[identitytest.Update] > 100 || n[identitytest.Get] != n[identitytest.Update] {
					b.Errorf("R-ID-15: %v in 5 minutes, want a back-off up to 7 s", n)
				}
				b.server.ClearFaults()
				b.passes(7 * time.Second)
				p.holds(1)
			})
		})
	}
}

// TestStopDuringAnAcquisition is R-ID-16: a write whose answer nobody waits for any more leaves no Lease without a holder behind. What is
// another's by then, what alone knows the epoch, and what is to be kept stays; and a server that does not answer is waited for in bounds.
func TestStopDuringAnAcquisition(t *testing.T) {
	free := func(l *coordinationv1.Lease) { l.Spec.HolderIdentity, l.Annotations = nil, nil }
	ahead := func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity, l.Annotations[identity.EpochAnnotation] = nil, "1000"
	}
	thief := func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("m_thief") }
	for what, c := range map[string]struct {
		stored, edited func(*coordinationv1.Lease)
		keep, stays    bool
		hangs          time.Duration
	}{
		"created":       {},
		"adopted":       {stored: free},
		"taken":         {stored: free, edited: thief, stays: true},
		"edited":        {edited: func(l *coordinationv1.Lease) { l.Labels["theirs"] = "x" }},
		"ahead":         {stored: ahead, stays: true},
		"kept":          {keep: true, stays: true},
		"without a GET": {stays: true, hangs: 10 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				op := identitytest.Create
				if c.stored != nil {
					op = identitytest.Update
					b.store(c.stored)
				}
				b.server.Faults(identitytest.Fault{Client: "h-1", Operation: op, Hang: true, Committed: true})
				p := b.process("h", func(s *identity.Spec) { s.KeepOnStop = c.keep }).start()
				b.passes(3 * time.Second)
				if c.edited != nil {
					b.edit(c.edited)
				}
				if c.hangs > 0 {
					b.server.Faults(identitytest.Fault{Hang: true, Times: -1})
				}
				begun := time.Now()
				if err := p.stop(); err != nil || p.count() != 0 {
					b.Errorf("Run returned %v, work was called %d times", err, p.count())
				}
				if took := time.Since(begun); took > c.hangs {
					b.Errorf("R-ID-16: Run returned after %s, want at most %s", took, c.hangs)
				}
				if got := len(b.server.Leases()) == 1; got != c.stays {
					b.Errorf("R-ID-16: the Lease is there: %v, want %v", got, c.stays)
				}
			})
		})
	}
}

// TestLateRenewals: with the shortest hold that is allowed, and renewals as late as they may be, one that gets no answer and a slow one after it
// are no loss.
func TestLateRenewals(t *testing.T) {
	inBubble(t, func(b *bed) {
		p := b.process("h", func(s *identity.Spec) { s.Timing.Jitter, s.Timing.Hold = 0.5, 30*time.Second }).start()
		b.passes(time.Second)
		e := p.holds(1)
		for range 50 {
			b.server.Faults(
				identitytest.Fault{Operation: identitytest.Update, Hang: true},
				identitytest.Fault{Operation: identitytest.Update, Delay: 7 * time.Second})
			b.passes(time.Minute)
		}
		if p.holds(1) != e {
			b.Error("the epoch has changed")
		}
	})
}

// TestWorkThatFailsAfterALoss: the Lease is lost while work drains after the end of ctx. There is no next hold, and Run returns what work has
// returned; a loss before the end of ctx is followed by the next hold.
func TestWorkThatFailsAfterALoss(t *testing.T) {
	for _, result := range []error{nil, errors.New("boom"), context.Canceled, identity.ErrLost} {
		inBubble(t, func(b *bed) {
			p := b.process("h")
			p.linger, p.result = 5*time.Minute, result
			p.start()
			b.passes(time.Second)
			want := result
			if errors.Is(result, context.Canceled) || errors.Is(result, identity.ErrLost) {
				want = nil
			}
			b.edit(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil })
			b.passes(6 * time.Minute)
			p.holds(2)
			p.cancel()
			b.server.Stop()
			b.passes(time.Minute)
			p.lost(identity.Taken, identity.Expired)
			if err := p.returns(); !errors.Is(err, want) || want == nil && err != nil {
				b.Errorf("work returned %v, and Run %v", result, err)
			}
			if p.count() != 2 {
				b.Errorf("work was called %d times, want 2", p.count())
			}
		})
	}
}
