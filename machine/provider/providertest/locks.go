// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"slices"
	"sync"
)

// locks are locks by name. Who waits for one gives up when its ctx ends. The zero value is ready.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when it is let go
}

// lock takes all of some names, in one order for everybody, and returns what lets them go.
func (l *locks) lock(ctx context.Context, names ...string) (unlock func(), err error) {
	slices.Sort(names)
	names = slices.Compact(names)
	for i, name := range names {
		if err := l.one(ctx, name); err != nil {
			l.unlock(names[:i])
			return nil, err
		}
	}
	return func() { l.unlock(names) }, nil
}

func (l *locks) one(ctx context.Context, name string) error {
	for {
		l.mu.Lock()
		wait, held := l.held[name]
		if !held {
			if l.held == nil {
				l.held = map[string]chan struct{}{}
			}
			l.held[name] = make(chan struct{})
			l.mu.Unlock()
			return nil
		}
		l.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *locks) unlock(names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		close(l.held[name])
		delete(l.held, name)
	}
}
