// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"slices"
	"time"
)

// releaseTime bounds what [Drainer.Run] does after its context has ended.
const releaseTime = time.Minute

// Run reconciles a set until it is done or ctx ends, and tells report, which may be nil, after each pass. When ctx ends before the set
// is done, Run releases all its nodes, within a minute, before it returns ctx's error with the statuses as they were: no eviction starts
// after it has returned. A pass that cannot run is tried again, at growing intervals; SetStatus.Message has its error meanwhile. An invalid
// set is an error at once.
func (d *Drainer) Run(ctx context.Context, s Set, report func(SetStatus)) (SetStatus, error) {
	if err := s.Validate(); err != nil {
		return SetStatus{}, err
	}
	todo := newAgenda()
	defer d.Watch(todo.changed)()
	failures := 0
	for {
		st, after, err := d.reconcileSet(ctx, s, todo)
		s.Last = &st
		if err != nil && ctx.Err() == nil {
			st.Message = err.Error()
		}
		if report != nil {
			report(st)
		}
		if ctx.Err() != nil {
			return d.restore(ctx, s, st)
		}
		if terminal := terminalOf(err); terminal != nil {
			return st, terminal
		}
		if st.Done && err == nil {
			return st, nil
		}
		failures++
		if err == nil {
			failures = 0
		}
		if !d.pause(ctx, todo.wake, after, failures) {
			return d.restore(ctx, s, st)
		}
	}
}

// terminalOf is the part of err that trying again cannot mend.
func terminalOf(err error) error {
	if errors.Is(err, ErrOption) {
		return err
	}
	return nil
}

// pause waits for the next pass: for its time, for a change, or for the end of ctx, which it reports as false. After failures a change
// does not shorten the wait.
func (d *Drainer) pause(ctx context.Context, wake <-chan struct{}, after time.Duration, failures int) bool {
	if after == 0 {
		after = lastFallback
	}
	if failures > 0 { // no later than a node asks for that has not failed: a held one counts on it
		after, wake = min(max(after, time.Second), jitter(min(time.Second<<min(failures, 6), lastFallback))), nil
	}
	t := time.NewTimer(after)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-wake:
	}
	return ctx.Err() == nil
}

// restore releases the nodes of a set whose drain was cancelled: those that carry its mark. What the holder has cordoned for anything else is
// left as it is.
func (d *Drainer) restore(ctx context.Context, s Set, st SetStatus) (SetStatus, error) {
	cause := ctx.Err()
	if s.Request.Mode == Release {
		return st, cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	s.Groups = [][]string{d.marked(s, st)}
	if len(s.Groups[0]) == 0 {
		return st, cause
	}
	s.Request.Mode, s.Request.Policy.Soak, s.Last = Release, 0, &st
	for {
		back, after, err := d.ReconcileSet(ctx, s)
		for _, b := range back.Nodes {
			i := slices.IndexFunc(st.Nodes, func(n Status) bool { return n.Node == b.Node })
			if i >= 0 && b.Phase == Released {
				st.Nodes[i].Phase = Released
			}
		}
		if back.Done && err == nil {
			return st, cause
		}
		if !d.pause(ctx, nil, after, 0) {
			return st, errors.Join(cause, err)
		}
	}
}

// marked names the nodes of a set that are cordoned for it, as far as the last status or the cache know. A write whose answer was lost may
// have marked any other one that has been looked at: those are in too.
func (d *Drainer) marked(s Set, st SetStatus) []string {
	var out []string
	for _, n := range st.Nodes {
		lost, refused := d.registry.unsure(key{n.Node, s.Request.Holder}, s.Request.Maintenance)
		if n.underWay() || d.begun(n.Node, s.Request) || lost || refused && !d.taken(n.Node, s.Request) {
			out = append(out, n.Node)
		}
	}
	return out
}
