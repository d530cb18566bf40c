// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/option"
)

// releaseTime bounds what [Drainer.Run] does after its context has ended.
const releaseTime = time.Minute

// Run reconciles a set until it is done or ctx ends, and tells report, which may be nil, after each pass. When ctx ends
// before the set is done, Run releases all its nodes, within a minute, before it returns ctx's error with the statuses
// as they were: no eviction starts after it has returned. Of nodes that this Drainer has not written for the
// maintenance it asks the server whether an earlier process has. A pass that cannot run is tried again, at growing
// intervals; SetStatus.Message has its error meanwhile. An invalid set is an error at once, and so is, within a second,
// a cache that has stopped ([ErrCacheStopped]): the nodes then stay as they are, as after a crash, and the next process
// goes on.
func (d *Drainer) Run(ctx context.Context, s Set, report func(SetStatus)) (SetStatus, error) {
	if d == nil || d.registry == nil {
		return SetStatus{}, option.NotMade("drain.Drainer.Run", "drain.New")
	}
	if err := s.Validate(); err != nil {
		return SetStatus{}, err
	}
	todo := newAgenda()
	defer d.Watch(todo.changed)()
	failures := 0
	for {
		if err := d.checkCache(); errors.Is(err, ErrCacheStopped) {
			return lastOf(s), err
		}
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

// lastOf is the last status of a set, if there is one.
func lastOf(s Set) SetStatus {
	if s.Last == nil {
		return SetStatus{}
	}
	return *s.Last
}

// terminalOf is the part of err that trying again cannot mend.
func terminalOf(err error) error {
	if errors.Is(err, ErrOption) || errors.Is(err, ErrCacheStopped) {
		return err
	}
	return nil
}

// stoppedInterval is how often Run looks whether its cache has stopped. There is no event for it.
const stoppedInterval = 500 * time.Millisecond

// hasStopped reports whether the cache will never show anything new.
func (d *Drainer) hasStopped() bool { return errors.Is(d.o.Cache.Check(), ErrCacheStopped) }

// pause waits for the next pass: for its time, for a change, or for the end of ctx, which it reports as false. After
// failures a change does not shorten the wait.
func (d *Drainer) pause(ctx context.Context, wake <-chan struct{}, after time.Duration, failures int) bool {
	if after == 0 {
		after = lastFallback
	}
	if failures > 0 { // no later than a node asks for that has not failed: a held one counts on it
		after, wake = min(max(after, time.Second), jitter(backoff.After(failures, time.Second, retryMost))), nil
	}
	t := time.NewTimer(after)
	defer t.Stop()
	look := time.NewTicker(stoppedInterval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
			if !d.hasStopped() {
				continue
			}
		case <-t.C:
		case <-wake:
		}
		return ctx.Err() == nil
	}
}

// restore releases the nodes of a set whose drain was cancelled: those that carry its mark. What the holder has
// cordoned for anything else is left as it is.
func (d *Drainer) restore(ctx context.Context, s Set, st SetStatus) (SetStatus, error) {
	cause := ctx.Err()
	if s.Request.Mode == Release {
		return st, cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	ok, err := d.giveBack(ctx, s, st, d.marked(s, st))
	for ok {
		names, unknown := d.unseen(ctx, s, st)
		if ok, err = d.giveBack(ctx, s, st, names); ok && unknown == nil {
			return st, cause
		}
		err = errors.Join(err, unknown)
		ok = ok && d.pause(ctx, nil, time.Second, 0)
	}
	return st, errors.Join(cause, err)
}

// giveBack releases these nodes of a set, and notes in st which are. It reports whether all are.
func (d *Drainer) giveBack(ctx context.Context, s Set, st SetStatus, names []string) (bool, error) {
	if len(names) == 0 {
		return true, nil
	}
	s.Groups = [][]string{names}
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
			return true, nil
		}
		if !d.pause(ctx, nil, after, 0) {
			return false, err
		}
	}
}

// marked names the nodes of a set that are cordoned for it, as far as the last status or the cache know.
func (d *Drainer) marked(s Set, st SetStatus) []string {
	var out []string
	for _, n := range st.Nodes {
		if h := d.findEntry(n.Node, s.Request); n.underWay() || h.isOf(s.Request.Mode) || h.isOf(modeWaiting) {
			out = append(out, n.Node)
		}
	}
	return out
}

// unseen asks the server about the other nodes of a set, and names those that carry its mark though the cache does not
// show it: a write whose answer was lost may have put it there, or, for a Drainer that has not written the node yet, an
// earlier process.
func (d *Drainer) unseen(ctx context.Context, s Set, st SetStatus) ([]string, error) {
	var mu sync.Mutex
	var out []string
	var errs []error
	var wg sync.WaitGroup
	places := make(chan struct{}, setWorkers)
	for _, n := range st.Nodes {
		known := !d.registry.unsure(key{n.Node, s.Request.Holder}, s.Request.Maintenance) && !d.doubtful(n.Node, s.Request)
		if n.Phase == Released || n.underWay() || known {
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			there, err := d.begunOnServer(ctx, n.Node, s)
			mu.Lock()
			defer mu.Unlock()
			if errs = append(errs, err); there {
				out = append(out, n.Node)
			}
		})
	}
	wg.Wait()
	return out, errors.Join(errs...)
}

// begunOnServer is begun as the server has it. What it has is known from then on.
func (d *Drainer) begunOnServer(ctx context.Context, name string, s Set) (bool, error) {
	node, err := d.o.Client.GetNode(ctx, name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("making sure that nothing is on node %q: %w", name, err)
	}
	d.registry.wrote(d.o.Cache, node)
	h := d.findEntry(name, s.Request)
	return h.isOf(s.Request.Mode) || h.isOf(modeWaiting), nil
}
