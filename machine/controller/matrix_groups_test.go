// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// groups are sets and deployments in memory, with the machines of a world's store. What is read may be from a cache, and what is written is guarded by versions.
type groups struct {
	w           *world
	version     int
	deployments map[string]machine.Deployment
	sets        map[string]machine.Set
	ward
	stale *controller.Group
	// known are all machines that ever were: that one is gone is looked at, too.
	known []machine.Key
	// ceiling is how many machines there may be, floor how many have to work. Zero is that nothing is promised.
	ceiling, floor int
}

var _ controller.Groups = (*groups)(nil)

// grouped is a world with sets and deployments.
func grouped(w *world) *groups {
	g := &groups{w: w, deployments: map[string]machine.Deployment{}, sets: map[string]machine.Set{}, ward: newWard(w.budget)}
	w.groups = g
	w.budget.limit = 9 // the strategy alone is in the way
	w.options.Machines, w.options.Nodes, w.options.Provider = w.store, w.nodes, cloud{w.cloud, w}
	w.start()
	return g
}

func (g *groups) controller() *controller.GroupController {
	c, err := controller.NewGroups(controller.GroupOptions{Cluster: clusterID, Groups: g, Doctor: g, Provider: g.w.options.Provider, Budget: g.lender, Skipped: g.hear})
	if err != nil {
		g.w.t.Fatal(err)
	}
	return c
}

// Health is that of the Nodes that there are.
func (g *groups) Health(_ context.Context, machines []machine.Machine) (map[machine.Key]machine.NodeHealth, bool) {
	health := map[machine.Key]machine.NodeHealth{}
	nodes := g.w.nodes.All()
	for _, m := range machines {
		for _, n := range nodes {
			if m.Node != nil && n.NodeRef == *m.Node {
				ill, is := g.sick[m.Token]
				health[m.Key] = machine.NodeHealth{Conditions: []machine.Condition{{Type: "Ready", Status: title(n.Ready && !is), Since: ill.since}}}
			}
		}
	}
	return health, true
}

func title(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// pass has the controllers look at everything once.
func (g *groups) pass() {
	w := g.w
	if w.secondGroup != nil {
		if _, err := w.secondGroup.Reconcile(w.t.Context(), "fleet"); err != nil {
			w.t.Log("the other controller of groups: ", err)
		}
	}
	w.alive(func() (time.Duration, error) { return w.group.Reconcile(w.t.Context(), "fleet") })
	for _, key := range w.keys() {
		if !slices.Contains(g.known, key) {
			g.known = append(g.known, key)
		}
	}
	for _, key := range g.known {
		w.pass(key)
	}
}

// until has the controllers look until something is true.
func (g *groups) until(what string, true func() bool) {
	w := g.w
	w.t.Helper()
	for range 300 {
		g.settle()
		if true() {
			return
		}
		w.pause()
		g.pass()
		<-time.After(5 * time.Second)
	}
	for _, key := range w.keys() {
		m := w.live(key)
		w.t.Logf("machine %q of %q: phase %s, step %+v, failure %+v, deleted %v", key, m.Owner.Name, m.Phase, m.Step, m.Failure, m.Deleted)
	}
	w.t.Fatalf("not %s: deployments %+v, sets %+v; last calls %v", what, g.deployments, g.sets, w.trace[max(0, len(w.trace)-30):])
}

// freeze has Read answer with what there is now.
func (g *groups) freeze() { g.stale = ptr.To(g.now()) }

func (g *groups) now() controller.Group {
	all, err := g.w.store.ListLive(g.w.t.Context())
	if err != nil {
		g.w.t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b machine.Machine) int { return strings.Compare(a.Name, b.Name) })
	now := controller.Group{Machines: all}
	for _, name := range slices.Sorted(maps.Keys(g.sets)) {
		now.Sets = append(now.Sets, g.sets[name])
	}
	for _, name := range slices.Sorted(maps.Keys(g.checks)) {
		now.Checks = append(now.Checks, g.checks[name])
	}
	for _, name := range slices.Sorted(maps.Keys(g.deployments)) {
		now.Deployments = append(now.Deployments, g.deployments[name])
	}
	return now
}

// look checks what holds at every moment.
func (g *groups) look(call string) {
	w, instances := g.w, 0
	for _, i := range w.cloud.Instances() {
		instances += one(i.State.Alive())
	}
	g.disturbed(call)
	machines, working := g.count()
	if g.ceiling > 0 && max(instances, machines) > g.ceiling {
		w.wrong = append(w.wrong, fmt.Sprintf("at %s: %d machines with %d instances, and there may be %d", call, machines, instances, g.ceiling))
	}
	if working < g.floor {
		w.wrong = append(w.wrong, fmt.Sprintf("at %s: %d machines work, and %d have to", call, working, g.floor))
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// count is the truth about machines: one works whose instance runs, whose Node is ready, and that nobody has in hand.
func (g *groups) count(wanted ...func(m machine.Machine) bool) (machines, working int) {
	all, err := g.w.store.ListLive(g.w.t.Context())
	if err != nil {
		g.w.t.Fatal(err)
	}
	nodes := map[machine.NodeRef]machine.Node{}
	for _, n := range g.w.nodes.All() {
		nodes[n.NodeRef] = n
	}
	for _, m := range all {
		if m.Node == nil || !m.Deleted.IsZero() || m.Release != nil {
			continue
		}
		n := nodes[*m.Node]
		_, held := g.w.nodes.Held(n.Annotations)
		is := n.Ready && !n.Uninitialized && !held
		for _, f := range wanted {
			is = is && f(m)
		}
		working += one(is)
	}
	return len(all), working
}

// settle brings the promises of the deployment down, or up, to its present spec once they are true.
func (g *groups) settle() {
	d, ok := g.deployments["pool"]
	if !ok {
		return
	}
	s := d.Spec
	machines, working := g.count()
	missing := s.Strategy.MaxUnavailable.Value
	most, least := s.Replicas+s.Strategy.MaxSurge.Value, s.Replicas-missing
	if s.Strategy.Type == machine.OnDelete {
		most, least = s.Replicas, 0
	}
	if g.ceiling = max(g.ceiling, most); machines <= most {
		g.ceiling = most
	}
	if g.floor = min(g.floor, least); working >= least {
		g.floor = least
	}
}

func (g *groups) next() string {
	g.version++
	return "g" + strconv.Itoa(g.version)
}

// put stores a set.
func (g *groups) put(s machine.Set) {
	s.Version = g.next()
	g.sets[s.Name] = s
}

// Read implements [controller.Groups].
func (g *groups) Read(_ context.Context, _ string, live bool) (controller.Group, error) {
	call := "ReadGroup"
	if live {
		call = "ReadGroupLive"
	}
	return seen(g.w, call, func() (controller.Group, error) {
		now := g.now()
		switch {
		case g.stale == nil || live:
		case g.w.half:
			now.Machines = g.stale.Machines
		default:
			now = *g.stale
		}
		return now, nil
	})
}

// did is a write that the world sees.
func (g *groups) did(call string, f func() error) error {
	_, err := seen(g.w, call, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

func (g *groups) PutDeploymentStatus(_ context.Context, d machine.Deployment) (machine.Deployment, error) {
	return seen(g.w, "PutDeploymentStatus", func() (machine.Deployment, error) {
		now, there := g.deployments[d.Name]
		if !there || now.Version != d.Version {
			return d, controller.ErrConflict
		}
		now.Status, now.Version = d.Status, g.next()
		g.deployments[d.Name] = now
		return now, nil
	})
}

func (g *groups) PutSetStatus(_ context.Context, s machine.Set) (machine.Set, error) {
	return seen(g.w, "PutSetStatus", func() (machine.Set, error) {
		now, err := g.set(s.Name, s.UID, s.Version)
		if err != nil {
			return s, err
		}
		now.Status = s.Status
		g.put(now)
		return g.sets[s.Name], nil
	})
}

// set returns a set of that version.
func (g *groups) set(name, uid, version string) (machine.Set, error) {
	now, there := g.sets[name]
	switch {
	case !there:
		return now, fs.ErrNotExist
	case now.UID != uid || now.Version != version:
		return now, controller.ErrConflict
	}
	return now, nil
}

func (g *groups) CreateSet(_ context.Context, s machine.Set) error {
	return g.did("CreateSet", func() error {
		if _, there := g.sets[s.Name]; there {
			return fs.ErrExist
		}
		s.UID, s.Generation, s.Created = "uid-"+s.Name, 1, time.Now()
		g.put(s)
		return nil
	})
}

func (g *groups) PutSet(_ context.Context, s machine.Set) error {
	return g.did("PutSet", func() error {
		now, err := g.set(s.Name, s.UID, s.Version)
		if err == nil {
			s.Status, s.Generation = now.Status, now.Generation+1
			g.put(s)
		}
		return err
	})
}

func (g *groups) DeleteSet(_ context.Context, c machine.Choice) error {
	return g.did("DeleteSet", func() error {
		_, err := g.set(c.Name, c.UID, c.Version)
		if err == nil {
			delete(g.sets, c.Name)
		}
		return err
	})
}

func (g *groups) OwnSet(_ context.Context, c machine.Choice, d machine.Owner) error {
	return g.did("OwnSet", func() error {
		now, err := g.set(c.Name, c.UID, c.Version)
		if err == nil {
			now.Owner = d
			g.put(now)
		}
		return err
	})
}

func (g *groups) CreateMachines(_ context.Context, machines []machine.Machine) []error {
	errs := make([]error, len(machines))
	for i, m := range machines {
		errs[i] = g.createMachine(m)
	}
	return errs
}

func (g *groups) createMachine(m machine.Machine) error {
	return g.did("CreateMachine", func() error {
		if _, err := g.w.store.Live(g.w.t.Context(), m.Key); err == nil {
			return fs.ErrExist
		}
		g.w.store.Put(m)
		return nil
	})
}

// machine changes a machine of that version.
func (g *groups) machine(key machine.Key, uid, version string, change func()) error {
	now, err := g.w.store.Live(g.w.t.Context(), key)
	switch {
	case err != nil:
		return err
	case now.UID != uid || now.Version != version:
		return controller.ErrConflict
	}
	change()
	return nil
}

func (g *groups) PutMachine(_ context.Context, m machine.Machine) error {
	return g.did("PutMachine", func() error {
		return g.machine(m.Key, m.UID, m.Version, func() { g.w.store.Put(m) })
	})
}

func (g *groups) OwnMachine(_ context.Context, c machine.Choice, s machine.Owner) error {
	return g.did("OwnMachine", func() error {
		return g.machine(c.Key, c.UID, c.Version, func() { g.w.store.Edit(c.Key, func(m *machine.Machine) { m.Owner = s }) })
	})
}

func (g *groups) DeleteMachine(_ context.Context, c machine.Choice) error {
	return g.did("DeleteMachine", func() error {
		return g.machine(c.Key, c.UID, c.Version, func() {
			g.covered("deleted", c.UID)
			g.w.store.Delete(c.Key)
		})
	})
}

func (g *groups) AnnotateDeployment(context.Context, machine.Choice, map[string]*string) error {
	return nil
}

func (g *groups) AnnotateSet(context.Context, machine.Choice, map[string]*string) error { return nil }
