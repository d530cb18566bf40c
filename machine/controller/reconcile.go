// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"time"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// maxSteps bounds a pass: a machine has fewer steps from its birth to its end.
const maxSteps = 64

// Reconcile does all that can be done now for one machine. after is when to call it again though nothing has changed; zero means not before. After an
// error it is to be called again, backing off. A machine that isn't there is no error.
func (c *Controller) Reconcile(ctx context.Context, key machine.Key) (after time.Duration, err error) {
	if c.memory == nil {
		return 0, option.NotMade("machine/controller.Controller.Reconcile", "machine/controller.New")
	}
	mem := c.of(key)
	mem.pass.Lock()
	defer mem.pass.Unlock()
	m, err := c.o.Machines.Get(ctx, key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, c.bury(ctx, key, mem)
	case err != nil:
		return 0, fmt.Errorf("read machine %q: %w", key, err)
	}
	p := &pass{c: c, mem: mem, m: m, stored: m.Status, resume: mem.pending}
	mem.fresh, mem.pending = "", ""
	for range maxSteps {
		after, done, err := p.step(ctx)
		switch {
		case errors.Is(err, ErrConflict):
			return time.Second, nil
		case err != nil || done:
			return after, err
		}
	}
	return 0, fmt.Errorf("machine %q: no end after %d steps, the last one %q: this is a bug", key, maxSteps, p.m.Step.Name)
}

// bury forgets a machine that is gone. A slot that was taken for it too late is given back.
func (c *Controller) bury(ctx context.Context, key machine.Key, mem *memory) error {
	if mem.took != nil {
		ctx, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
		defer cancel()
		if err := c.o.Budget.Free(ctx, mem.took.Key.String(), mem.took.UID, mem.loan); err != nil {
			return fmt.Errorf("free the slot of machine %q, which is gone: %w", key, err)
		}
	}
	c.forget(key)
	return nil
}

// A pass is one call of Reconcile.
type pass struct {
	c   *Controller
	mem *memory
	// m is the machine with the status that was decided last; stored is the one that the store has.
	m      machine.Machine
	stored machine.Status
	// live means that m was read from the store, or written to it, in this pass.
	live bool
	// asked, noded and looked: the provider was asked for the instance; the Node's removal was asked for; the list was overtaken.
	asked, noded, looked bool
	// resume is the token whose instance was Pending in the pass before.
	resume string
	// started and uncordoned: that was done to the Node in this pass, and a cache may not show it yet.
	started, uncordoned bool
	// nodesLive means that the workload cluster itself was asked in this pass, and that found is what it has said.
	nodesLive bool
	found     []machine.Node
	// agreed: the gates have, and it was the last thing that was done.
	agreed bool
}

// step decides once, stores, and acts.
func (p *pass) step(ctx context.Context) (after time.Duration, done bool, err error) {
	p.notice()
	v, err := p.view(ctx)
	if err != nil {
		return 0, true, err
	}
	d := machine.Decide(v)
	same, err := p.settle(ctx, d)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, true, nil
	}
	if err != nil || !same {
		return 0, err != nil, err
	}
	if err := p.blame(ctx, d.Status); err != nil {
		return 0, true, err
	}
	if same, err := p.free(ctx, d); err != nil || !same {
		return 0, err != nil, err
	}
	if d.Action.Kind == machine.None {
		return p.again(d), true, nil
	}
	return p.carry(ctx, d)
}

// carry carries out the action of a decision. The pass is over when that has to be waited for.
func (p *pass) carry(ctx context.Context, d machine.Decision) (after time.Duration, done bool, err error) {
	pause, err := p.act(ctx, d.Action)
	if err == nil && pause == 0 && d.Action.Kind == machine.Backup {
		return 0, false, p.store(ctx, p.m.Status) // so that it is not asked for again
	}
	if err != nil || pause == 0 {
		return 0, err != nil || d.Action.Kind == machine.RemoveFinalizer, err
	}
	if p.worthStoring(p.m.Status) {
		return pause, true, p.store(ctx, p.m.Status)
	}
	return p.again(machine.Decision{Status: p.m.Status, After: pause}), true, nil
}

// settle makes sure that a decision is one on the machine as it is, and stores what is to be stored of it. same means that it stands; else it is to be decided again.
func (p *pass) settle(ctx context.Context, d machine.Decision) (same bool, err error) {
	if hasEffect(d.Action.Kind) && !p.live && !d.Store { // what is stored first is stored in that version, or not at all
		if same, err := p.refresh(ctx); err != nil || !same {
			return false, err
		}
	}
	if !d.Store && (d.Action.Kind != machine.None || !p.worthStoring(d.Status)) {
		p.m.Status = d.Status
		return true, nil
	}
	was := p.live
	if err = p.store(ctx, d.Status); was || !errors.Is(err, ErrConflict) {
		return err == nil, err
	}
	_, err = p.refresh(ctx)
	return false, err
}

// refresh reads the machine from the store; same means that the decision stands.
func (p *pass) refresh(ctx context.Context) (same bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.c.o.CallTimeout)
	defer cancel()
	m, err := p.c.o.Machines.Live(ctx, p.m.Key)
	if err != nil {
		return false, fmt.Errorf("read machine %q: %w", p.m.Key, err)
	}
	p.live = true
	same = m.Version == p.m.Version && m.UID == p.m.UID
	if !same {
		p.m, p.stored = m, m.Status
		p.asked, p.looked, p.mem.fresh, p.mem.pending = false, false, "", "" // what was looked up was for a machine that has gone on
	}
	return same, nil
}

// hasEffect is whether an action may only follow a decision on the machine as it is now. A look at an instance goes by the cache: while a thousand
// instances start, each is looked at every few seconds.
func hasEffect(k machine.ActionKind) bool { return k != machine.None && k != machine.Lookup }

// store writes a status; the rest of the machine is that of the store afterwards.
func (p *pass) store(ctx context.Context, s machine.Status) error {
	ctx, cancel := context.WithTimeout(ctx, p.c.o.CallTimeout)
	defer cancel()
	next := p.m
	next.Status = s
	next.Updated = p.c.o.Now()
	m, err := p.c.o.Machines.PutStatus(ctx, next)
	if err != nil {
		return fmt.Errorf("store the status of machine %q: %w", p.m.Key, err)
	}
	if count := p.c.o.Metrics.Step; count != nil && p.stored.Step.Name != s.Step.Name {
		count(p.stored.Step.Name, s.Step.Name)
	}
	p.m, p.stored, p.live = m, m.Status, true
	p.mem.unshown, p.mem.wrote, p.mem.wroteAt = time.Time{}, s, m.Version
	p.notice()
	return nil
}

// worthStoring is whether a status that is only shown is written now: at once where others act on it, else when it has been so for a while.
func (p *pass) worthStoring(s machine.Status) bool {
	s.Updated, p.mem.wrote.Updated = p.stored.Updated, p.stored.Updated
	if reflect.DeepEqual(shown(s), shown(p.stored)) || p.mem.wroteAt == p.m.Version && reflect.DeepEqual(shown(s), shown(p.mem.wrote)) {
		p.mem.unshown = time.Time{}
		return false
	}
	now := p.c.o.Now()
	if p.mem.unshown.IsZero() {
		p.mem.unshown = now
	}
	edge := s.Phase != p.stored.Phase && (settled(s.Phase) || settled(p.stored.Phase)) || (s.Failure == nil) != (p.stored.Failure == nil) ||
		s.Failure != nil && s.Failure.Reason != p.stored.Failure.Reason || planned(s) != planned(p.stored)
	return edge || now.Sub(p.mem.unshown) >= p.c.o.ShowEvery
}

// planned is for which try a change was planned: not to be asked for again.
func planned(s machine.Status) string {
	if s.Update == nil {
		return ""
	}
	return s.Update.Retry
}

func settled(p machine.Phase) bool {
	return p == machine.PhaseRunning || p == machine.PhaseFailed || p == machine.PhaseRetired
}

// shown is a status without what need not be stored for itself: the words of an instance, and one that only starts, with the generation that its
// ProviderID has made. Of a machine that has none, and is not about to have one, each generation is stored: whether its spec can be understood is said of that.
func shown(s machine.Status) machine.Status {
	if s.Instance == nil || s.Instance.State == provider.Pending {
		s.Instance = nil
		if !settled(s.Phase) {
			s.Observed = 0
		}
		return s
	}
	i := *s.Instance
	i.Message = ""
	s.Instance = &i
	return s
}

// again is when to come back: also for what was not shown yet.
func (p *pass) again(d machine.Decision) time.Duration {
	after := d.After
	if since := p.mem.unshown; !since.IsZero() {
		if show := max(p.c.o.ShowEvery-p.c.o.Now().Sub(since), time.Second); after == 0 || show < after {
			after = show
		}
	}
	return after
}

// notice ends the backoff of a machine that was changed, and keeps when its version was seen first.
func (p *pass) notice() {
	mem, m := p.mem, p.m
	if mem.tries+mem.conflicts > 0 && (mem.generation != m.Generation || mem.retry != m.Annotations[machine.RetryAnnotation]) {
		mem.tries, mem.notBefore, mem.conflicts, mem.noToken = 0, time.Time{}, 0, time.Time{}
	}
	if mem.version != m.Version {
		mem.version, mem.seen = m.Version, p.c.o.Now()
	}
}

// maxPoll is how long a provider may say that it need not be asked.
const maxPoll = 5 * time.Minute

func pollAfter(seconds int64) time.Duration {
	return time.Duration(min(seconds, int64(maxPoll/time.Second))) * time.Second
}

// polls is what the provider goes on with, unless something else is wanted since.
func (p *pass) polls() []machine.Poll {
	if p.mem.pollOf != p.tried() {
		return nil
	}
	return p.mem.polls
}

// tried tells what is wanted now, and asked for, from what was before.
func (p *pass) tried() string {
	return fmt.Sprintf("%d %s", p.m.Generation, p.m.Annotations[machine.RetryAnnotation])
}

// refused keeps how many tokens in a row the provider has refused: to end one and to try the next must not go on in a circle.
func (p *pass) refused(class provider.Class) {
	mem := p.mem
	if class != provider.Conflict {
		if class == "" {
			mem.conflicts, mem.noToken = 0, time.Time{}
		}
		return
	}
	mem.conflicts++
	mem.generation, mem.retry = p.m.Generation, p.m.Annotations[machine.RetryAnnotation]
	mem.noToken = p.c.o.Now().Add(class.Backoff(mem.conflicts))
}

// failed keeps when the provider may be asked again.
func (p *pass) failed(err error) {
	mem := p.mem
	if err == nil {
		mem.tries, mem.notBefore = 0, time.Time{}
		return
	}
	mem.tries++
	mem.generation, mem.retry = p.m.Generation, p.m.Annotations[machine.RetryAnnotation]
	mem.notBefore = p.c.o.Now().Add(max(provider.ClassOf(err).Backoff(mem.tries), provider.AfterOf(err)))
}
