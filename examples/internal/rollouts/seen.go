// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// seen is what watches show.
type seen struct {
	rollouts kube.Cache[v1alpha1.Rollout]
	ledger   kube.LedgerStore

	mu   sync.Mutex
	most int // slots at a time, since the last call of Most
}

func (s *seen) watch(client dynamic.Interface) (err error) {
	if s.rollouts, err = kube.NewRolloutCache(client); err != nil {
		return err
	}
	s.ledger, err = kube.NewLedgerStore(client, Name)
	return err
}

// Watch sees how far the rollout is until ctx ends.
func (f *Fleet) Watch(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.seen.rollouts.Run(ctx, f.wake) })
	g.Go(func() error {
		return f.seen.ledger.Run(ctx, func() {
			away := len(f.Away())
			f.seen.mu.Lock()
			f.seen.most = max(f.seen.most, away)
			f.seen.mu.Unlock()
			f.wake()
		})
	})
	return g.Wait()
}

func (f *Fleet) wake() {
	select {
	case f.wakes <- struct{}{}:
	default: // somebody is about to look anyway
	}
}

// Changes has a value after something has changed.
func (f *Fleet) Changes() <-chan struct{} { return f.wakes }

// Away are the nodes that have a slot in the ledger: they may be disrupted now.
func (f *Fleet) Away() map[string]bool {
	l, _, ok := f.seen.ledger.Seen()
	away := map[string]bool{}
	if ok {
		for _, s := range l.Slots {
			away[s.Node] = true
		}
	}
	return away
}

// Epoch is how many attempts the ledger has seen so far.
func (f *Fleet) Epoch() int64 {
	l, _, _ := f.seen.ledger.Seen()
	return int64(l.Epoch)
}

// Most is how many nodes had a slot at a time at most, in every version of the ledger that was seen since it was asked last.
func (f *Fleet) Most() int {
	f.seen.mu.Lock()
	defer f.seen.mu.Unlock()
	most := f.seen.most
	f.seen.most = 0
	return most
}

// Rollout is the Rollout as it was seen last, not to be changed; nil if it is not there.
func (f *Fleet) Rollout() *v1alpha1.Rollout {
	r, _ := f.seen.rollouts.Get(Name)
	return r
}
