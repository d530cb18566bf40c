// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// A world is a store with one deployment, its sets and machines, and what becomes of machines: they join, fail, come back and go.
type world struct {
	rnd      *rand.Rand
	now      time.Time
	rv, uid  int
	d        machine.Deployment
	sets     map[string]machine.Set
	machines map[string]machine.Machine
	nodes    map[machine.Key]machine.NodeHealth
	// doomed machines were moved, and are disturbed as soon as their instance follows.
	doomed map[string]bool
	// blind means that the workload cluster can't be asked.
	blind bool
	// skew means that the present template must not run.
	skew bool
	// everything that ever was, for caches that are behind.
	past []snapshot
	// ceiling is how many machines there may be, floor how many have to work, debt how many of those were lost by what is not our doing.
	ceiling, floor, debt int
	faults               bool
	log                  []string
	broken               string
	made                 int
}

type snapshot struct {
	d        machine.Deployment
	sets     map[string]machine.Set
	machines map[string]machine.Machine
}

func newWorld(seed uint64) *world {
	w := &world{
		rnd: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
		sets: map[string]machine.Set{}, machines: map[string]machine.Machine{},
		nodes: map[machine.Key]machine.NodeHealth{}, doomed: map[string]bool{},
	}
	w.faults = w.rnd.IntN(2) == 0
	w.d = machine.Deployment{
		Key: machine.Key{Namespace: "ns", Name: "pool"}, UID: "d-uid", Created: w.now, Generation: 1,
		Spec: machine.DeploymentSpec{
			Replicas: w.rnd.IntN(6), Selector: map[string]string{"pool": "a"}, Template: template("v1.36.0"), Strategy: w.strategy(), History: -1,
			MaxProvisioning: w.rnd.IntN(3), Order: []machine.DeleteOrder{"", machine.NewestFirst, machine.OldestFirst}[w.rnd.IntN(3)],
			MinReady: time.Duration(w.rnd.IntN(2)) * 20 * time.Second,
		},
	}
	w.ceiling, _ = w.bounds()
	w.wrote()
	return w
}

func template(kubelet string) machine.Template {
	t := machine.Template{Labels: map[string]string{"pool": "a"}}
	t.Spec.Versions.Kubelet, t.Spec.Roles = kubelet, []string{"worker"}
	return t
}

func (w *world) strategy() machine.Strategy {
	amounts := []machine.Amount{{}, {Value: 1}, {Value: 2}, {Value: 30, Percent: true}, {Value: 100, Percent: true}}
	return machine.Strategy{
		Type:     []machine.StrategyType{"", machine.RollingUpdate, machine.InPlace, machine.InPlace, machine.OnDelete}[w.rnd.IntN(5)],
		MaxSurge: amounts[w.rnd.IntN(len(amounts))], MaxUnavailable: amounts[w.rnd.IntN(len(amounts))],
	}
}

// bounds are what is promised of the present spec, worked out apart from the code under test.
func (w *world) bounds() (most, least int) {
	s, n := w.d.Spec.Strategy, w.d.Spec.Replicas
	share := func(a machine.Amount, round int) int {
		if !a.Percent {
			return a.Value
		}
		return (n*a.Value + round) / 100
	}
	surge, missing := share(s.MaxSurge, 99), share(s.MaxUnavailable, 0)
	switch {
	case s.Type == machine.OnDelete:
		surge, missing = 0, 0
	case s.MaxSurge.Value == 0 && s.MaxUnavailable.Value == 0:
		surge = 1
	case surge == 0 && missing == 0:
		missing = 1
	}
	return n + surge, max(0, n-missing)
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, w.now.Format("04:05 ")+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
		w.note("BROKEN: %s", w.broken)
	}
}

func (w *world) version() string {
	w.rv++
	return strconv.Itoa(w.rv)
}

// wrote keeps the past.
func (w *world) wrote() {
	w.past = append(w.past, snapshot{w.d, maps.Clone(w.sets), maps.Clone(w.machines)})
}

func (w *world) now0() snapshot { return w.past[len(w.past)-1] }

// works reports whether a machine does its work, in truth.
func (w *world) works(m machine.Machine) bool {
	n := w.nodes[m.Key]
	return m.Deleted.IsZero() && m.Update == nil && !w.doomed[m.Name] && m.Step.Name == machine.StepReady && len(n.Conditions) > 0 && n.Conditions[0].Status == "True"
}

func (w *world) working() int {
	n := 0
	for _, m := range w.machines {
		if w.works(m) {
			n++
		}
	}
	return n
}

// potential is how many machines the sets can come to have by themselves.
func (w *world) potential() (all int, shrinking bool) {
	owned, alive := map[string]int{}, map[string]int{}
	for _, m := range w.machines {
		owned[m.Owner.UID]++
		if m.Deleted.IsZero() {
			alive[m.Owner.UID]++
		}
		if _, ok := w.setOf(m.Owner.UID); !ok {
			all++
		}
	}
	for _, s := range w.sets {
		n := owned[s.UID]
		for _, r := range s.Status.Reserved {
			if _, there := w.machines[r.Name]; !there {
				n++
			}
		}
		if _, held := s.Annotations[machine.NoCreateAnnotation]; !held {
			n = max(n, s.Spec.Replicas)
		}
		all += n
		shrinking = shrinking || alive[s.UID] > s.Spec.Replicas
	}
	return all, shrinking
}

func (w *world) setOf(uid string) (machine.Set, bool) {
	for _, s := range w.sets {
		if s.UID == uid {
			return s, true
		}
	}
	return machine.Set{}, false
}

// settle brings the promises to the present spec, once nothing that was decided before can still come; until then the weaker of old and new holds.
func (w *world) settle(stale, busy bool) {
	most, least := w.bounds()
	w.ceiling, w.floor = max(w.ceiling, most), min(w.floor, least)
	potential, shrinking := w.potential()
	if stale {
		return
	}
	if potential <= most {
		w.ceiling = most
	}
	if working := w.working(); working >= least && !shrinking && !busy {
		w.floor, w.debt = least, 0
	}
}

// took checks a machine that we have taken away.
func (w *world) took(what, name string, worked bool) {
	w.note("%s %s (worked: %v), %d work, floor %d, debt %d", what, name, worked, w.working(), w.floor, w.debt)
	if left := w.working(); worked && left < w.floor-w.debt {
		w.fail("%s %s leaves %d machines that work, %d have to, %d were lost", what, name, left, w.floor, w.debt)
	}
}

// lose is a machine that stops working by what is not our doing.
func (w *world) lose(m machine.Machine) {
	if w.works(m) {
		w.debt++
	}
}

func (w *world) put(m machine.Machine) {
	m.Version = w.version()
	w.machines[m.Name] = m
	w.wrote()
}

func (w *world) putSet(s machine.Set) {
	s.Version = w.version()
	w.sets[s.Name] = s
	w.wrote()
}

func (w *world) edit(change func(*machine.DeploymentSpec)) {
	change(&w.d.Spec)
	w.d.Generation++
	w.d.Version = w.version()
	w.wrote()
}

// any returns one of the machines.
func (w *world) any() (machine.Machine, bool) {
	names := slices.Sorted(maps.Keys(w.machines))
	if len(names) == 0 {
		return machine.Machine{}, false
	}
	return w.machines[names[w.rnd.IntN(len(names))]], true
}

// live takes a machine one step on.
func (w *world) live(m machine.Machine) {
	digest := m.Spec.Digest()
	switch {
	case !m.Deleted.IsZero():
		delete(w.machines, m.Name)
		delete(w.nodes, m.Key)
		delete(w.doomed, m.Name)
		w.wrote()
		w.note("%s is gone", m.Name)
		return
	case m.Token == "":
		m.Token, m.Digest, m.Step.Name, m.Phase = "t-"+m.UID, digest, machine.StepJoining, machine.PhaseJoining
	case m.Update != nil:
		m.Update, m.Digest, m.Phase = nil, digest, machine.PhaseRunning
		delete(w.doomed, m.Name)
	case m.Digest != digest && !w.doomed[m.Name]: // nothing to do but to note it
		m.Digest = digest
	case m.Digest != digest && m.Node != nil:
		m.Update, m.Phase = &machine.Update{Slot: true}, machine.PhaseUpdating
	case m.Node == nil:
		m.Node, m.Step.Name, m.Digest = &machine.NodeRef{Name: m.Name, UID: m.UID}, machine.StepStarting, digest
		w.ready(m.Key, true)
	case m.Step.Name == machine.StepStarting:
		m.Step.Name, m.Phase = machine.StepReady, machine.PhaseRunning
		w.note("%s works", m.Name)
	default:
		delete(w.doomed, m.Name) // it was moved back before anything was done
		return
	}
	w.put(m)
}

func (w *world) ready(k machine.Key, yes bool) {
	c := machine.Condition{Type: "Ready", Status: "False", Since: w.now}
	if yes {
		c.Status = "True"
	}
	w.nodes[k] = machine.NodeHealth{Conditions: []machine.Condition{c}}
}

// seen are the Nodes as they can be asked now.
func (w *world) seen() map[machine.Key]machine.NodeHealth {
	if w.blind {
		return nil
	}
	return maps.Clone(w.nodes)
}

// plans are what the provider says of each machine, always the same.
func (w *world) plans(d machine.Deployment, machines []machine.Machine) map[machine.Key]provider.Plan {
	plans := map[machine.Key]provider.Plan{}
	for _, m := range machines {
		method := []provider.Method{provider.InPlace, provider.InPlace, provider.Replace, provider.Nothing}[len(m.Name+d.Spec.Template.Spec.Versions.Kubelet+m.UID)%4]
		plans[m.Key] = provider.Plan{Method: method, Disrupts: method == provider.InPlace}
	}
	return plans
}
