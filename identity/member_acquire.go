// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// An acquisition is one attempt to get the Lease, however often it has to ask for that.
type acquisition struct {
	m      *Member
	holder string
	seen   watch
	retry  retryDelay
	// unsure is set once a write has failed: it may have been carried out all the same.
	unsure bool
	// logged is the wait for a silent holder that was logged last.
	logged takeover
}

// acquire gets the Lease. It returns when it has it, when another process has the name, when the Node is gone, or when ctx has ended.
func (m *Member) acquire(ctx context.Context) (*tenure, error) {
	a := &acquisition{m: m, holder: m.newHolder()}
	m.know(func(k *known) { k.phase, k.duplicate = Acquiring, nil })
	t, err := a.run(ctx)
	if t == nil && a.unsure && !m.spec.KeepOnStop {
		a.withdraw(context.WithoutCancel(ctx))
	}
	return t, err
}

// run tries until it is decided, or ctx has ended.
func (a *acquisition) run(ctx context.Context) (*tenure, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t, wait, err := a.try(ctx)
		if t != nil || err != nil {
			return t, err
		}
		if err := a.m.wait(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// try makes one round: ask for the Node, read the Lease, and write it if it may be taken. Otherwise it says how long to wait.
func (a *acquisition) try(ctx context.Context) (*tenure, time.Duration, error) {
	gone, err := a.m.nodeGone(ctx)
	if gone {
		return nil, 0, err
	}
	if err != nil {
		return nil, a.failed(ctx, err), nil
	}
	r := a.m.get(ctx)
	if absent(r.err) {
		return a.take(ctx, nil)
	}
	if r.err != nil {
		return nil, a.failed(ctx, r.err), nil
	}
	a.m.know(func(k *known) { k.lease = r.value })
	return a.consider(ctx, r)
}

func (a *acquisition) failed(ctx context.Context, err error) time.Duration {
	wait := a.retry.after(err, a.m.spec.Timing.Renew)
	klog.FromContext(ctx).V(2).Info("Could not acquire the Lease, trying again", "lease", klog.KRef(a.m.spec.Namespace, a.m.spec.Name), "after", wait, "err", err)
	return wait
}

// consider decides about a Lease that was found.
func (a *acquisition) consider(ctx context.Context, r reply[*coordinationv1.Lease]) (*tenure, time.Duration, error) {
	m, t := a.m, a.m.spec.Timing
	a.seen = a.seen.saw(r.value, r.answered)
	quiet, next := a.seen.quiet(r.sent), m.takeoverOf(r.value)
	switch judge(sighting{
		lease: r.value, ours: m.ours(r.value), fingerprint: m.spec.Fingerprint, lock: m.locked,
		quiet: quiet, liveness: next.after, alive: a.seen.alive,
	}) {
	case adopt:
		return a.take(ctx, r.value)
	case duplicate:
		dup := &DuplicateError{Key: m.Key(), Ours: m.spec.Fingerprint, Theirs: fingerprintOf(r.value), Holder: holderOf(r.value)}
		if m.spec.OnDuplicate == FailOnDuplicate {
			return nil, 0, dup
		}
		dup.takeover = next
		m.foundDuplicate(ctx, dup)
	case keepWatching:
		a.logLongWait(ctx, r.value, next)
	}
	// A read alone is no progress where a write is due: the reads may work, and the writes fail for long.
	a.retry = retryDelay{}
	m.know(func(k *known) { k.phase, k.takeover = Watching, next })
	return nil, min(t.Renew/2, next.after-quiet), nil
}

// logLongWait logs once that a silent holder is waited for, where the wait is longer than the Liveness of this process.
func (a *acquisition) logLongWait(ctx context.Context, l *coordinationv1.Lease, next takeover) {
	if next.after <= a.m.spec.Timing.Liveness || next == a.logged {
		return
	}
	a.logged = next
	klog.FromContext(ctx).Info("Waiting for a silent holder of the Lease, longer than for Liveness", "lease", klog.KObj(l),
		"holder", holderOf(l), "after", next.after, "reason", next.reason)
}

// take writes the Lease: on top of old, and of no other version, or as a new one where there is none.
func (a *acquisition) take(ctx context.Context, old *coordinationv1.Lease) (*tenure, time.Duration, error) {
	m := a.m
	var number uint64
	if old != nil {
		version, err := versionOf(old)
		if err != nil {
			return nil, 0, err
		}
		number = adoptedEpoch(epochOf(old), version, m.number)
		if number >= 1<<epochBits {
			return nil, 0, fmt.Errorf("acquiring Lease %q: its annotation %s is %q, and no greater epoch can follow: remove it if it is forged",
				m.Key(), EpochAnnotation, old.Annotations[EpochAnnotation])
		}
	} else if m.number > 0 {
		number = m.number + 1
	}
	want := m.spec.claimed(old, claim{holder: a.holder, epoch: number, lock: m.locked}, m.clock.Now())
	var r reply[*coordinationv1.Lease]
	if old != nil {
		r = m.update(ctx, want, m.spec.Timing.requestLimit())
	} else {
		r = m.create(ctx, want)
	}
	if r.err != nil {
		a.unsure = true
		return nil, a.failed(ctx, r.err), nil
	}
	if old == nil {
		version, err := versionOf(r.value)
		if err != nil {
			return nil, 0, err
		}
		number = createdEpoch(version, m.number)
	}
	return m.begin(ctx, Epoch{Number: number, Holder: a.holder, UID: r.value.UID}, r), 0, nil
}

// nodeGone asks for the Node, where there is one to ask for.
func (m *Member) nodeGone(ctx context.Context) (bool, error) {
	if m.spec.Nodes == nil {
		return false, nil
	}
	r := request(ctx, m, "Get", m.spec.Timing.requestLimit(), func(ctx context.Context) (*corev1.Node, error) {
		return m.spec.Nodes.Get(ctx, m.spec.Node, metav1.GetOptions{})
	})
	want := m.spec.Fingerprint.NodeUID
	switch {
	case absent(r.err):
		return true, fmt.Errorf("looking for Node %q, UID %q, of Lease %q: not found: %w", m.spec.Node, want, m.Key(), ErrNodeGone)
	case r.err != nil:
		return false, fmt.Errorf("asking for Node %q: %w", m.spec.Node, r.err)
	case string(r.value.UID) != want:
		return true, fmt.Errorf("looking for Node %q, UID %q, of Lease %q: found UID %q: %w", m.spec.Node, want, m.Key(), r.value.UID, ErrNodeGone)
	}
	return false, nil
}
