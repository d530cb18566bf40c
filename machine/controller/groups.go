// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// GroupOptions are the parts of a [GroupController]. Groups is required.
type GroupOptions struct {
	// Cluster is as in [Options].
	Cluster string
	Groups  Groups
	// Doctor is needed for health checks, and for machines to count as ready: without one the status of a machine is believed.
	Doctor Doctor
	// Provider is asked for plans where a deployment updates in place, for reboots, for the size of groups, and for the capacity of Nodes that the
	// cluster-autoscaler could have, as far as it can.
	Provider provider.Provider
	// RestartAgent restarts the agent of a machine's Node, once for each id; nil is nobody can.
	RestartAgent func(ctx context.Context, m machine.Machine, id string) error
	// Budget is charged before a health check reboots or replaces a machine: give the machines' [Controller] the same one. Without one, the checks of a namespace
	// disturb one machine at a time.
	Budget Budget
	// Skipped is told, in each look at a health check, for which unhealthy machines nothing is begun now, and why; nil is nobody. It must not block.
	Skipped      func(check machine.Key, skipped []machine.Choice)
	ControlPlane ControlPlane
	// Cost is what the end of a machine costs; nil is nothing.
	Cost func(ctx context.Context, machines []machine.Machine) map[machine.Key]float64
	// CallTimeout is as in [Options].
	CallTimeout time.Duration
	Now         func() time.Time
}

// A GroupController looks after sets, deployments and health checks. It needs no more of a provider than that machines can be created and deleted. One of them works
// on a namespace at a time, by leader election: the bounds on machines of a deployment are promised for one writer. Make it with [NewGroups].
type GroupController struct {
	o   GroupOptions
	can provider.Abilities

	mu    sync.Mutex
	plans map[planKey]provider.Plan
	done  map[remedyKey]bool      // remedies that this process has carried out
	polls map[remedyKey]time.Time // when those that go on are asked for again
	// loans are slots that remedies have, as far as this process knows. swept are namespaces in which it has looked for those that another process has left.
	loans map[loanKey]machine.Key
	swept map[string]bool
	// capacity is what Nodes would have, by digest of what is desired.
	capacity map[string]known[map[string]string]
}

type planKey struct {
	namespace, uid, from, to string
}

type remedyKey struct{ namespace, id string }

type loanKey struct{ namespace, uid string }

// NewGroups returns a controller. It calls nothing yet.
func NewGroups(o GroupOptions) (*GroupController, error) {
	if err := option.CheckRequired(
		"machine/controller.NewGroups", "GroupOptions.Groups", o.Groups, "see machine/kube.NewGroups",
	); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = 30 * time.Second
	}
	g := &GroupController{
		o: o, plans: map[planKey]provider.Plan{}, done: map[remedyKey]bool{}, polls: map[remedyKey]time.Time{}, capacity: map[string]known[map[string]string]{},
		loans: map[loanKey]machine.Key{}, swept: map[string]bool{},
	}
	if o.Provider != nil {
		g.can = provider.AbilitiesOf(o.Provider)
	}
	return g, nil
}

// Reconcile does all that can be done now for a namespace: deployments, then sets, then health checks. after is when to call it again though nothing has
// changed; zero means not before. After an error it is to be called again, backing off: what could be done was done.
func (g *GroupController) Reconcile(ctx context.Context, namespace string) (after time.Duration, err error) {
	if g.plans == nil {
		return 0, option.NotMade("machine/controller.GroupController.Reconcile", "machine/controller.NewGroups")
	}
	p := &groupPass{g: g, ctx: ctx, namespace: namespace, plans: map[planKey]bool{}, remedies: map[remedyKey]bool{}}
	if err := p.read(false); err != nil {
		return 0, err
	}
	for _, d := range p.group.Deployments { // of this reading: a later one may have others
		p.note("deployment", d.Key, p.deployment(d.Key))
	}
	for _, s := range p.group.Sets {
		p.note("set", s.Key, p.set(s.Key))
	}
	if err := p.reclaim(); err != nil {
		p.errs = append(p.errs, fmt.Errorf("give back slots of %q: %w", namespace, err))
	}
	for _, h := range p.group.Checks {
		err := p.check(h.Key)
		p.unchecked = p.unchecked || err != nil
		p.note("health check", h.Key, err)
	}
	p.capacities()
	p.prune()
	return p.after, errors.Join(p.errs...)
}

// prune forgets what nothing has asked for in this pass: plans, and remedies, where the checks that could ask for them were carried out.
func (p *groupPass) prune() {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	maps.DeleteFunc(p.g.plans, func(k planKey, _ provider.Plan) bool { return k.namespace == p.namespace && !p.plans[k] })
	if !p.unchecked {
		maps.DeleteFunc(p.g.done, func(k remedyKey, _ bool) bool { return k.namespace == p.namespace && !p.remedies[k] })
		maps.DeleteFunc(p.g.polls, func(k remedyKey, _ time.Time) bool { return k.namespace == p.namespace && !p.remedies[k] })
	}
}

// A groupPass is one call of Reconcile.
type groupPass struct {
	g         *GroupController
	ctx       context.Context
	namespace string
	group     Group
	live      bool
	health    map[machine.Key]machine.NodeHealth
	known     bool
	cost      map[machine.Key]float64
	after     time.Duration
	errs      []error
	// plans and remedies are those that were asked for in this pass. unchecked means that a health check has failed.
	plans     map[planKey]bool
	remedies  map[remedyKey]bool
	unchecked bool
}

// soonAgain is when to look again after a conflict, and after something was written that a cache does not show yet.
const soonAgain = time.Second

func (p *groupPass) again(after time.Duration) {
	if after > 0 && (p.after == 0 || after < p.after) {
		p.after = after
	}
}

// note keeps an error; a conflict is none.
func (p *groupPass) note(kind string, key machine.Key, err error) {
	switch {
	case err == nil:
	case errors.Is(err, ErrConflict), errors.Is(err, fs.ErrNotExist):
		p.again(soonAgain)
	default:
		p.errs = append(p.errs, fmt.Errorf("%s %q: %w", kind, key, err))
	}
}

func (p *groupPass) read(live bool) error {
	ctx, cancel := context.WithTimeout(p.ctx, p.g.o.CallTimeout)
	defer cancel()
	group, err := p.g.o.Groups.Read(ctx, p.namespace, live)
	if err != nil {
		return fmt.Errorf("read the machines of %q: %w", p.namespace, err)
	}
	p.group, p.live = group, live
	if d := p.g.o.Doctor; d != nil {
		p.health, p.known = d.Health(ctx, group.Machines)
	}
	if p.g.o.Cost != nil {
		p.cost = p.g.o.Cost(ctx, group.Machines)
	}
	return nil
}

// call makes one call with its deadline.
func (p *groupPass) call(f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(p.ctx, p.g.o.CallTimeout)
	defer cancel()
	return f(ctx)
}

// stale means that what was read does not show what was written since.
func (p *groupPass) stale() { p.live = false }
