// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
)

// release gives the Lease back after the work has returned: it deletes the version that it has written, and no other. It takes
// Timing.Stop at most.
func (t *tenure) release(ctx context.Context) {
	m := t.m
	held := !t.over()
	m.know(func(k *known) { k.phase, k.held = Releasing, false })
	m.metrics.held(false)
	if !held || m.spec.KeepOnStop || t.ahead() {
		return
	}
	ctx, cancel := m.atTheEnd(ctx)
	defer cancel()
	t.giveBack(ctx)
}

// withdraw gives back what an acquisition has got without knowing it, as it was given up before the answer came: no work has begun under that
// holder, and the Lease would stay until it expires. It asks once, and takes Timing.Stop at most.
func (a *acquisition) withdraw(ctx context.Context) {
	m := a.m
	ctx, cancel := m.atTheEnd(ctx)
	defer cancel()
	r := m.get(ctx)
	if r.err != nil || holderOf(r.value) != a.holder {
		return
	}
	t := &tenure{m: m, epoch: Epoch{Number: epochOf(r.value), Holder: a.holder, UID: r.value.UID}, lease: r.value}
	if !t.ahead() {
		t.giveBack(ctx)
	}
}

// atTheEnd bounds what Run still asks for after the work has returned.
func (m *Member) atTheEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, m.spec.Timing.Stop)
}

// giveBack deletes the Lease, in the version that is known, as often as it takes until ctx ends.
func (t *tenure) giveBack(ctx context.Context) {
	m := t.m
	log := klog.FromContext(ctx).WithValues("lease", klog.KRef(m.spec.Namespace, m.spec.Name), "holder", t.epoch.Holder)
	var retry retryDelay
	for {
		released, err := t.tryRelease(ctx)
		if released {
			log.Info("Released the Lease")
			return
		}
		if err == nil {
			log.Info("The Lease is not released: another holder has it")
			return
		}
		if m.wait(ctx, retry.after(err, m.spec.Timing.Renew)) != nil {
			log.Error(err, "The Lease is not released: it will have to expire")
			return
		}
	}
}

// ahead reports whether the epoch is ahead of the server's versions, as after a move to another cluster. Then the Lease alone knows how far the
// epochs are, and is not deleted.
func (t *tenure) ahead() bool {
	version, err := versionOf(t.lease)
	return err != nil || version < t.epoch.Number
}

// tryRelease makes one round. Without an error and without success the Lease is another's.
func (t *tenure) tryRelease(ctx context.Context) (released bool, err error) {
	r := t.m.remove(ctx, t.lease)
	if r.err == nil || absent(r.err) {
		return true, nil
	}
	if !apierrors.IsConflict(r.err) {
		return false, r.err
	}
	// Somebody has edited it, or the last renewal was carried out without an answer.
	now := t.m.get(ctx)
	switch {
	case absent(now.err):
		return true, nil
	case now.err != nil:
		return false, now.err
	case now.value.UID != t.epoch.UID || holderOf(now.value) != t.epoch.Holder:
		return false, nil
	}
	t.lease = now.value
	return false, r.err
}
