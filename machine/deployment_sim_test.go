// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// A process carries out what is decided, one write or read at a time. Its caches are behind the world, and it is killed now and then.
type process struct {
	w *world
	// seen is the index of the past that its caches have.
	seen int
	// work is what is left of the pass of each object, the first step first.
	work map[string][]func()
	// asleep is an object whose pass does not come forward for a while.
	asleep string
	// generation is that of the deployment which the pass under way has read; 0 without one.
	generation int64
}

func newProcess(w *world) *process { return &process{w: w, work: map[string][]func(){}} }

// step does one thing: a step of a pass under way, or the beginning of one.
func (p *process) step() {
	p.seen = min(len(p.w.past)-1, p.seen+p.w.rnd.IntN(4))
	names := append(slices.Sorted(maps.Keys(p.w.now0().sets)), "")
	name := names[p.w.rnd.IntN(len(names))]
	if p.w.rnd.IntN(25) == 0 {
		p.asleep = name
	}
	if name != "" && name == p.asleep && p.w.rnd.IntN(20) > 0 {
		return
	}
	if steps := p.work[name]; len(steps) > 0 {
		p.work[name] = steps[1:]
		steps[0]()
		return
	}
	if name == "" {
		p.deployment(p.w.past[p.seen], false)
	} else {
		p.set(name, p.w.past[p.seen], false)
	}
}

// kill ends all passes. What was under way may still be done: whoever comes next begins after that.
func (p *process) kill() {
	for _, name := range slices.Sorted(maps.Keys(p.work)) {
		if steps := p.work[name]; len(steps) > 0 && p.w.rnd.IntN(2) == 0 {
			steps[0]()
		}
	}
	p.work, p.generation = map[string][]func(){}, 0
	p.seen = p.w.rnd.IntN(p.seen + 1) // another one with older caches
	p.w.note("killed")
}

// stale reports whether a pass is under way on a deployment that has changed since.
func (p *process) stale() bool {
	return len(p.work[""]) > 0 && p.generation != p.w.d.Generation
}

// busy reports whether anything that was decided is still to be done.
func (p *process) busy() bool {
	for _, steps := range p.work {
		if len(steps) > 0 {
			return true
		}
	}
	return false
}

func (p *process) do(name string, steps ...func()) { p.work[name] = append(p.work[name], steps...) }

func (p *process) set(name string, from snapshot, live bool) {
	s, ok := from.sets[name]
	if !ok {
		return
	}
	d := machine.DecideSet(machine.SetView{Set: s, Now: p.w.now, Machines: values(from.machines), Live: live, Nodes: p.w.seen()})
	if d.NeedLive {
		var read snapshot
		p.do(name, func() { read.sets = p.w.now0().sets }, func() {
			read.machines = p.w.now0().machines
			p.set(name, read, true)
		})
		return
	}
	if !live && len(d.Adopt)+len(d.Create)+len(d.Delete) > 0 {
		p.w.fail("set %s acts on a cache", name)
	}
	if d.Store {
		p.do(name, func() { p.storeSet(s, d.Status) })
	}
	for _, r := range d.Create {
		p.do(name, func() { p.create(s.Machine(r)) })
	}
	for _, c := range d.Delete {
		p.do(name, func() { p.delete(c) })
	}
	for _, c := range d.Adopt {
		p.do(name, func() { p.adopt(c, s) })
	}
}

// storeSet writes a status; on a conflict the rest of the pass is not done.
func (p *process) storeSet(s machine.Set, status machine.SetStatus) {
	now, ok := p.w.sets[s.Name]
	if !ok || now.UID != s.UID || now.Version != s.Version {
		p.work[s.Name] = nil
		return
	}
	now.Status = status
	p.w.putSet(now)
}

func (p *process) create(m machine.Machine) {
	w := p.w
	if _, there := w.machines[m.Name]; there {
		return
	}
	w.uid++
	w.made++
	m.UID, m.Created = fmt.Sprint("m", w.uid), w.now
	w.put(m)
	w.note("create %s of %s: %d, ceiling %d", m.Name, m.Owner.Name, len(w.machines), w.ceiling)
	if len(w.machines) > w.ceiling {
		w.fail("%d machines, %d may be", len(w.machines), w.ceiling)
	}
}

func (p *process) delete(c machine.Choice) {
	m, ok := p.w.machines[c.Name]
	if !ok || m.UID != c.UID || m.Version != c.Version || !m.Deleted.IsZero() {
		return
	}
	worked := p.w.works(m)
	if _, marked := m.Annotations[machine.DeleteAnnotation]; marked {
		p.w.lose(m) // it is somebody's wish that this one goes before one that doesn't work
	}
	m.Deleted = p.w.now
	p.w.put(m)
	p.w.took("delete", m.Name+" of "+m.Owner.Name+", "+c.Reason, worked)
}

func (p *process) adopt(c machine.Choice, s machine.Set) {
	if m, ok := p.w.machines[c.Name]; ok && m.Version == c.Version {
		m.Owner = machine.Owner{UID: s.UID, Name: s.Name}
		p.w.put(m)
	}
}

func (p *process) deployment(from snapshot, live bool) {
	d, machines := from.d, values(from.machines)
	p.generation = d.Generation
	v := machine.DeploymentView{Deployment: d, Now: p.w.now, Sets: values(from.sets), Machines: machines, Live: live, Nodes: p.w.seen()}
	v.Plans = p.w.plans(d, machines)
	if p.w.skew {
		v.Skew = "the control plane is older"
	}
	got := machine.DecideDeployment(v)
	if got.NeedLive {
		var read snapshot
		p.do("", func() { read.sets = p.w.now0().sets }, func() { read.d = p.w.d; p.generation = read.d.Generation }, func() {
			read.machines = p.w.now0().machines
			p.deployment(read, true)
		})
		return
	}
	if !live && (got.Create != nil || len(got.Update)+len(got.Moves)+len(got.Delete) > 0) {
		p.w.fail("the deployment acts on a cache")
	}
	if got.Store {
		p.do("", func() {
			if p.w.d.Version != d.Version {
				p.work[""] = nil
				return
			}
			p.w.d.Status, p.w.d.Version = got.Status, p.w.version()
			p.w.wrote()
		})
	}
	p.carry(d, v.Plans, got)
}

func (p *process) carry(d machine.Deployment, plans map[machine.Key]provider.Plan, got machine.DeploymentDecision) {
	w := p.w
	if s := got.Create; s != nil {
		p.do("", func() {
			if _, there := w.sets[s.Name]; !there {
				w.uid++
				made := *s
				made.UID, made.Created = fmt.Sprint("s", w.uid), w.now
				w.putSet(made)
				w.note("set %s of %s", made.Name, d.Spec.Template.Spec.Versions.Kubelet)
			}
		})
	}
	for _, u := range got.Update {
		p.do("", func() {
			if now, ok := w.sets[u.Set.Name]; ok && now.Version == u.Set.Version {
				u.Set.Status, u.Set.Generation = now.Status, now.Generation+1
				w.putSet(u.Set)
				w.note("set %s: %d %v: %s", u.Set.Name, u.Set.Spec.Replicas, u.Set.Annotations, u.Reason)
			}
		})
	}
	for _, m := range got.Moves {
		p.do("", func() { p.move(m, plans[m.Machine.Key]) })
	}
	for _, c := range got.Delete {
		p.do("", func() {
			if s, ok := w.sets[c.Name]; ok && s.UID == c.UID && s.Version == c.Version {
				delete(w.sets, c.Name)
				w.wrote()
			}
		})
	}
}

func (p *process) move(m machine.Move, plan provider.Plan) {
	now, ok := p.w.machines[m.Machine.Name]
	if !ok || now.Version != m.Machine.Version {
		return
	}
	worked := p.w.works(now)
	if plan.Method != provider.Nothing {
		p.w.doomed[now.Name] = true
	}
	p.w.put(m.Machine)
	p.w.took("move", m.Machine.Name, worked && plan.Method != provider.Nothing)
}

func values[T any](m map[string]T) []T {
	all := make([]T, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, m[k])
	}
	return all
}

// disturb is what others do.
func (w *world) disturb() {
	switch n := w.rnd.IntN(40); n {
	case 0:
		w.edit(func(s *machine.DeploymentSpec) { s.Replicas = w.rnd.IntN(6) })
		w.note("replicas %d", w.d.Spec.Replicas)
	case 1:
		w.edit(func(s *machine.DeploymentSpec) { s.Template = template(fmt.Sprintf("v1.36.%d", w.rnd.IntN(3))) })
		w.note("template %s", w.d.Spec.Template.Spec.Versions.Kubelet)
	case 2:
		w.edit(func(s *machine.DeploymentSpec) { s.Strategy = w.strategy() })
		w.note("strategy %v", w.d.Spec.Strategy)
	case 3:
		w.edit(func(s *machine.DeploymentSpec) { s.Paused = !s.Paused })
	case 4:
		w.blind = !w.blind
	case 5:
		w.skew = !w.skew
	default:
		if m, ok := w.any(); ok && w.faults {
			w.fault(m, n)
		}
	}
}

// fault is what happens to one machine.
func (w *world) fault(m machine.Machine, n int) {
	switch {
	case n == 6 && m.Deleted.IsZero(): // somebody deletes it
		w.lose(m)
		m.Deleted = w.now
		w.put(m)
		w.note("%s is deleted by hand", m.Name)
	case n < 9 && m.Node != nil:
		w.lose(m)
		w.ready(m.Key, false)
		w.note("%s fails", m.Name)
	case n < 11 && m.Node != nil:
		w.ready(m.Key, true)
	case n == 11 && w.d.Spec.Replicas > 0: // as the cluster-autoscaler does
		m.Annotations = map[string]string{machine.DeleteAnnotation: "now"}
		w.put(m)
		w.edit(func(s *machine.DeploymentSpec) { s.Replicas-- })
		w.note("autoscaler takes %s", m.Name)
	case n == 12:
		m.Labels = map[string]string{"pool": "elsewhere"}
		w.put(m)
	}
}

// done reports whether the deployment is where it should be.
func (w *world) done() string {
	var wrong []string
	if len(w.machines) != w.d.Spec.Replicas || w.working() != w.d.Spec.Replicas {
		wrong = append(wrong, fmt.Sprintf("%d machines, %d work, want %d", len(w.machines), w.working(), w.d.Spec.Replicas))
	}
	for _, m := range w.machines {
		if got, want := m.Spec.Versions.Kubelet, w.d.Spec.Template.Spec.Versions.Kubelet; got != want && w.d.Spec.Strategy.Type != machine.OnDelete {
			wrong = append(wrong, m.Name+" has "+got+", want "+want)
		}
	}
	if w.d.Status.Failure != nil {
		wrong = append(wrong, "failure: "+w.d.Status.Failure.Message)
	}
	return strings.Join(wrong, "; ")
}

func (w *world) tail() string { return strings.Join(w.log[max(0, len(w.log)-60):], "\n") }

// TestRollouts: whatever happens in whatever order, with caches that are behind and a process that is killed anywhere, there are never more machines than
// replicas and surge, and never are fewer left than have to work by our doing; and in the end everything is as it should be. R-MA-09, R-MA-28.
func TestRollouts(t *testing.T) {
	seeds := raceshare.Of(t, uint64(2400))
	made, moved := 0, 0
	for seed := range seeds {
		w := newWorld(seed)
		w.run(newProcess(w))
		if w.broken != "" {
			t.Fatalf("seed %d: %s\n%s", seed, w.broken, w.tail())
		}
		if wrong := w.done(); wrong != "" {
			t.Fatalf("seed %d: it does not come to its end: %s: %q\n%s", seed, wrong, w.d.Status.Message, w.tail())
		}
		made += w.made
		moved += strings.Count(strings.Join(w.log, "\n"), " move ")
	}
	if made < int(seeds) || moved < int(seeds)/10 {
		t.Errorf("%d machines were made and %d moved in %d worlds: they show nothing", made, moved, seeds)
	}
}

// run lets things happen, and then leaves everything to itself.
func (w *world) run(p *process) {
	for range 300 {
		w.tick(p)
		if w.rnd.IntN(8) == 0 {
			w.disturb()
		}
		if w.rnd.IntN(60) == 0 {
			p.kill()
		}
	}
	w.blind, w.skew = false, false
	w.edit(func(s *machine.DeploymentSpec) { s.Paused = false })
	for _, k := range slices.SortedFunc(maps.Keys(w.nodes), func(a, b machine.Key) int { return strings.Compare(a.Name, b.Name) }) {
		w.ready(k, true)
	}
	for i := 0; i < 3000 && (i < 200 || w.done() != ""); i++ {
		w.tick(p)
	}
}

func (w *world) tick(p *process) {
	w.now = w.now.Add(5e9)
	p.step()
	if m, ok := w.any(); ok && w.rnd.IntN(3) == 0 {
		w.live(m)
	}
	w.settle(p.stale(), p.busy())
}
