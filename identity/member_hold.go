// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/internal/backoff"
)

// A tenure is one hold of the Lease. The goroutine of Run owns it; a request runs in another one, so that the end of the hold is seen
// at its time also while a request hangs.
type tenure struct {
	m     *Member
	epoch Epoch
	// lease is as the server last answered; good is when the last successful write was sent.
	lease *coordinationv1.Lease
	good  time.Duration
	// due is when the next request is to be sent; reread makes it a GET, to see who has written in between.
	due    time.Duration
	reread bool
	retry  retryDelay
	// replies is where the answer comes, nil while no request is under way; cancel ends it.
	replies <-chan reply[*coordinationv1.Lease]
	cancel  context.CancelFunc
}

// begin makes a hold known. The first renewal is due at its time, or at once if the epoch is not in the Lease yet.
func (m *Member) begin(ctx context.Context, e Epoch, r reply[*coordinationv1.Lease]) *tenure {
	t := &tenure{m: m, epoch: e, lease: r.value, good: r.sent, due: r.sent}
	if r.value.Annotations[EpochAnnotation] == strconv.FormatUint(e.Number, 10) {
		t.due += m.spec.Timing.interval()
	}
	m.number = e.Number
	m.know(func(k *known) {
		k.phase, k.epoch, k.held, k.duplicate = Held, e, true, nil
		k.wrote(r)
	})
	m.metrics.held(true)
	klog.FromContext(ctx).Info("Acquired the Lease", "lease", klog.KRef(m.spec.Namespace, m.spec.Name), "holder", e.Holder, "epoch", e.Number)
	return t
}

// interval is the time from one renewal to the next.
func (t Timing) interval() time.Duration {
	return backoff.Jitter(t.Renew, 1, 1+t.Jitter, nil)
}

// longest is the longest interval.
func (t Timing) longest() time.Duration {
	return t.Renew + time.Duration(t.Jitter*float64(t.Renew))
}

// run does the work while the Lease is held. done is false if it was lost: then the work has returned, and Run acquires it again, unless ctx has
// ended.
func (t *tenure) run(ctx context.Context, work func(context.Context, Epoch) error) (done bool, err error) {
	if t.over() {
		t.lost(ctx, Expired)
		return false, nil
	}
	working, end := context.WithCancelCause(ctx)
	defer end(nil)
	returned := make(chan error, 1)
	go func() { returned <- work(working, t.epoch) }()
	// The Lease is renewed for as long as the work goes on, also after the end of ctx.
	reason, err := t.keep(context.WithoutCancel(ctx), returned)
	if reason == "" {
		t.abandon()
		t.release(context.WithoutCancel(ctx))
		return true, err
	}
	t.lost(ctx, reason)
	end(fmt.Errorf("holding Lease %q, epoch %d: %s: %w", t.m.Key(), t.epoch.Number, reason, ErrLost))
	t.abandon()
	err = <-returned
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrLost) {
		err = nil
	}
	if ctx.Err() != nil { // there is no next hold: the error of the work is that of Run
		return true, err
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "The work has failed after the Lease was lost", "lease", klog.KRef(t.m.spec.Namespace, t.m.spec.Name))
	}
	return false, nil
}

// over reports whether the time of the hold is up, by a clock that goes on while the machine is suspended.
func (t *tenure) over() bool { return t.m.clock.Elapsed()-t.good >= t.m.spec.Timing.Hold }

// keep renews until the work has returned, with its error, or the Lease is lost, with the reason.
func (t *tenure) keep(ctx context.Context, returned <-chan error) (LossReason, error) {
	for {
		if t.over() {
			return Expired, nil
		}
		if t.replies == nil && t.m.clock.Elapsed() >= t.due {
			t.send(ctx)
		}
		tick, stop := t.m.clock.Timer(t.nap())
		select {
		case err := <-returned:
			stop()
			return "", err
		case r := <-t.replies:
			t.replies = nil
			if reason := t.answered(r); reason != "" {
				stop()
				return reason, nil
			}
		case <-tick:
		}
		stop()
	}
}

// nap is how long nothing needs to be done. A timer does not see that the machine was suspended, hence many short ones.
func (t *tenure) nap() time.Duration {
	timing, now := t.m.spec.Timing, t.m.clock.Elapsed()
	nap := min(time.Second, timing.Hold/10, t.good+timing.Hold-now)
	if t.replies == nil {
		nap = min(nap, t.due-now)
	}
	return max(nap, shortNap)
}

// send begins the request that is due. A renewal ends before the hold does; a GET ends with it, see abandon.
func (t *tenure) send(ctx context.Context) {
	timing := t.m.spec.Timing
	limit := min(timing.requestLimit(), t.good+timing.Hold-t.m.clock.Elapsed())
	ctx, cancel := context.WithCancel(ctx)
	replies := make(chan reply[*coordinationv1.Lease], 1)
	t.replies, t.cancel = replies, cancel
	if t.reread {
		go func() { replies <- t.m.get(ctx) }()
		return
	}
	next := t.m.spec.renewed(t.lease, t.epoch.Number, t.m.clock.Now())
	go func() { replies <- t.m.update(ctx, next, limit) }()
}

// abandon ends the request that is under way and waits for its goroutine. Whether it was carried out is not known then.
func (t *tenure) abandon() {
	if t.replies != nil {
		t.cancel()
		if r := <-t.replies; r.err == nil && !t.reread {
			t.lease = r.value
		}
		t.replies = nil
	}
}

// answered goes on from an answer: it says when to send what next, or why the Lease is lost.
func (t *tenure) answered(r reply[*coordinationv1.Lease]) LossReason {
	t.cancel()
	switch {
	case absent(r.err):
		return Deleted
	case r.err != nil:
		t.again(r)
	case t.reread:
		return t.found(r)
	default:
		t.lease, t.good, t.retry = r.value, r.sent, retryDelay{}
		t.due = r.sent + t.m.spec.Timing.interval()
		t.m.know(func(k *known) { k.wrote(r) })
	}
	return ""
}

// again plans the next try after an error. A conflict means that another version is stored: it is read at once the first time.
func (t *tenure) again(r reply[*coordinationv1.Lease]) {
	first := t.retry == retryDelay{}
	wait := t.retry.after(r.err, t.m.spec.Timing.Renew)
	if apierrors.IsConflict(r.err) {
		t.reread = true
		if first {
			wait = 0
		}
	}
	t.due = r.answered + wait
}

// found goes on from the Lease that was read after a conflict. With our own holder in it, somebody has edited the rest, or a renewal of ours was
// carried out whose answer got lost: the next one goes on top, with all that is ours. Without its label a view would not see the Lease, and
// call a member gone that works.
func (t *tenure) found(r reply[*coordinationv1.Lease]) LossReason {
	switch {
	case r.value.UID != t.epoch.UID:
		return Deleted
	case holderOf(r.value) != t.epoch.Holder:
		return Taken
	}
	t.lease = t.m.spec.restored(r.value, claim{holder: t.epoch.Holder, epoch: t.epoch.Number, lock: t.m.locked})
	t.reread, t.due = false, r.answered
	t.m.know(func(k *known) { k.lease = r.value })
	return ""
}

// lost makes a loss known.
func (t *tenure) lost(ctx context.Context, reason LossReason) {
	t.m.know(func(k *known) { k.phase, k.held = Acquiring, false })
	t.m.metrics.held(false)
	t.m.metrics.lost(reason)
	klog.FromContext(ctx).Info("Lost the Lease", "lease", klog.KRef(t.m.spec.Namespace, t.m.spec.Name), "holder", t.epoch.Holder, "epoch", t.epoch.Number, "reason", reason)
}
