// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// Inject begins a fault. Each fault lasts until what Inject has returned is called as often as Inject was; LostReply is over with one call.
func (m *Memory) Inject(f Fault) (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults == nil {
		m.faults = map[Fault]int{}
	}
	if f == StaleList && m.faults[f] == 0 {
		m.history = []snapshot{m.seen(time.Now())}
	}
	m.faults[f]++
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.faults[f] = max(m.faults[f]-1, 0)
	})
}

// call carries out one call: f has its effect, under the lock.
func call[R any](ctx context.Context, m *Memory, method, token string, f func() (R, error)) (R, error) {
	var none R
	half, err := m.enter(ctx, method, token)
	if err != nil {
		return none, err
	}
	result, err := effect(m, f)
	switch {
	case dead(ctx):
		return none, errDead
	case err != nil:
		return none, err
	case m.loses(method):
		return none, provider.Errorf(provider.Unavailable, "%s %q: %w", method, token, errLost)
	}
	if err := wait(ctx, half, method, token); err != nil {
		return none, err
	}
	return result, nil
}

func effect[R any](m *Memory, f func() (R, error)) (R, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.changed()
	return f()
}

// enter counts a call and refuses it if there is a fault. It returns what the call has to wait for after its effect.
func (m *Memory) enter(ctx context.Context, method, token string) (half time.Duration, err error) {
	m.mu.Lock()
	if m.calls == nil {
		m.calls = map[string]int{}
	}
	m.calls[method]++
	half = m.Latency / 2
	if m.faults[Latency] > 0 {
		half = max(half, time.Minute/2)
	}
	m.mu.Unlock()
	if m.OnCall != nil {
		if err := m.OnCall(ctx, method, token); err != nil {
			return 0, err
		}
	}
	if err := wait(ctx, half, method, token); err != nil {
		return 0, err
	}
	return half, m.refusal(method, token)
}

func (m *Memory) refusal(method, token string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.faults[Unavailable] > 0:
		return provider.Errorf(provider.Unavailable, "%s %q: nobody answers", method, token)
	case m.faults[Unauthorized] > 0:
		return provider.Errorf(provider.Unauthorized, "%s %q: the credentials are refused", method, token)
	case m.faults[RateLimit] > 0, m.faults[RateLimitAfter] > 0:
		err := provider.Errorf(provider.RateLimited, "%s %q: one call too many", method, token)
		if m.faults[RateLimitAfter] > 0 {
			err.After = 7 * time.Second
		}
		return err
	}
	return nil
}

func wait(ctx context.Context, d time.Duration, method, token string) error {
	if d > 0 && ctx.Err() == nil {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return provider.Errorf(provider.Unavailable, "%s %q: %w", method, token, err)
	}
	return nil
}

// loses reports whether the reply of a call is lost.
func (m *Memory) loses(method string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch method {
	case "Get", "List", "Plan", "Validate", "Capacity", "Console":
		return false
	}
	lost := m.faults[LostReply] > 0
	if lost {
		m.faults[LostReply]--
	}
	return lost
}

// changed notes what List will show later.
func (m *Memory) changed() {
	if m.ListLag <= 0 || m.faults[StaleList] > 0 {
		return
	}
	now := time.Now()
	keep := 0
	for n, s := range m.history {
		if now.Sub(s.at) >= m.ListLag {
			keep = n
		}
	}
	m.history = append(m.history[keep:], m.seen(now))
}

func (m *Memory) seen(at time.Time) snapshot { return snapshot{at, m.all()} }

// shown returns what List shows now.
func (m *Memory) shown() []provider.Instance {
	switch {
	case m.faults[StaleList] > 0:
		return m.history[0].all
	case m.ListLag <= 0:
		return m.all()
	}
	var all []provider.Instance
	for _, s := range m.history {
		if time.Since(s.at) >= m.ListLag {
			all = s.all
		}
	}
	return all
}

// death is a process that dies at a point of its call.
type death struct {
	left int
	died bool
}

type deathKey struct{}

// errDead ends a call whose process has died. Nobody sees it.
var errDead = errors.New("the process has died")

func dead(ctx context.Context) bool {
	d, ok := ctx.Value(deathKey{}).(*death)
	return ok && d.died
}

// errLost is in the errors of calls whose reply was lost.
var errLost = errors.New("the reply was lost")

// step is a point of a call: between two effects of it, before the first or after the last.
func step(ctx context.Context) error {
	d, ok := ctx.Value(deathKey{}).(*death)
	if !ok {
		return nil
	}
	d.died = d.died || d.left == 0
	d.left--
	if d.died {
		return errDead
	}
	return nil
}

// crash makes a call that dies at a point of it.
func crash(ctx context.Context, p provider.Provider, c Call, point int) bool {
	d := &death{left: point}
	_ = c.Do(context.WithValue(ctx, deathKey{}, d), p) // what the call has to say dies with it, or is not asked for
	return d.died
}
