// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/machine"
)

// R-MA-02 and R-MA-09: the controllers of sets, of deployments and of their machines are killed before and after each of their calls while a pool grows, shrinks, is
// rolled out, and is ended, or are frozen before it. In the end there are as many machines as are wanted, with one instance each; at no time there are more than replicas
// and surge, nor do fewer work than the strategy promises.
func TestKilledInEachLifeOfAPool(t *testing.T) {
	for name, tell := range map[string]story{
		"a set grows and shrinks":     setScaled,
		"grows and shrinks":           scaled,
		"rolled out with a surge":     rolled(1, 0),
		"rolled out without a surge":  rolled(0, 1),
		"rolled out as they are gone": onDelete,
		"rolled out in place":         inPlace,
	} {
		t.Run(name, func(t *testing.T) { matrix(t, tell, ofGroups) })
	}
}

// ofGroups are the calls of sets and deployments. Those of their machines have a matrix of their own.
func ofGroups(call string) bool {
	return !reads[call] && slices.ContainsFunc([]string{"Set", "Deployment", "Machine"}, func(s string) bool { return strings.HasSuffix(call, s) }) ||
		strings.HasSuffix(call, "SetStatus") || strings.HasSuffix(call, "DeploymentStatus")
}

func template(size string) machine.Template {
	m := worker("")
	m.Spec.Config = []byte(fmt.Sprintf(`{"image":"a","size":%q}`, size))
	return machine.Template{Labels: map[string]string{"pool": "a"}, Spec: m.Spec}
}

// deploy makes a deployment, and waits for it.
func (g *groups) deploy(replicas int, s machine.Strategy) {
	d := machine.Deployment{Key: machine.Key{Namespace: "fleet", Name: "pool"}, UID: "uid-pool", Generation: 1, Created: time.Now()}
	d.Spec = machine.DeploymentSpec{Replicas: replicas, Selector: map[string]string{"pool": "a"}, Template: template("s"), Strategy: s, Order: machine.OldestFirst, History: -1}
	d.Version = g.next()
	g.deployments["pool"] = d
	g.rest()
}

// edit changes what is wanted, as a user does.
func (g *groups) edit(change func(s *machine.DeploymentSpec)) {
	d := g.deployments["pool"]
	change(&d.Spec)
	d.Generation, d.Version = d.Generation+1, g.next()
	g.deployments["pool"] = d
}

// rest waits until all is as it is wanted, and says what there is.
func (g *groups) rest() string {
	g.w.t.Helper()
	g.until("at rest", func() bool {
		d := g.deployments["pool"]
		digest, s := d.Spec.Template.Spec.Digest(), d.Status
		all, works := g.count(func(m machine.Machine) bool {
			return m.Phase == machine.PhaseRunning && m.Digest == digest && m.Update == nil && m.Spec.Digest() == digest
		})
		return works == d.Spec.Replicas && all == works && len(g.sets) == 1 && s.Observed == d.Generation &&
			s.Replicas == works && s.Updated == works && s.Available == works
	})
	return fmt.Sprint(len(g.now().Machines), " machines, ", len(g.w.cloud.Instances()), " instances, ", len(g.sets), " sets")
}

// end has all machines go.
func (g *groups) end() {
	g.edit(func(s *machine.DeploymentSpec) { s.Replicas = 0 })
	g.until("empty", func() bool { return len(g.now().Machines) == 0 && g.deployments["pool"].Status.Replicas == 0 })
	g.pass()
}

func scaled(w *world) []string {
	g := grouped(w)
	g.deploy(1, machine.Strategy{})
	w.begin()
	var tale []string
	for _, n := range []int{3, 1} {
		g.edit(func(s *machine.DeploymentSpec) { s.Replicas = n })
		tale = append(tale, g.rest())
	}
	g.end()
	return w.over(tale)
}

// rolled is a rollout of machines that are replaced, and that is changed half-way.
func rolled(surge, missing int) story {
	return func(w *world) []string {
		g := grouped(w)
		g.deploy(2, machine.Strategy{MaxSurge: machine.Amount{Value: surge}, MaxUnavailable: machine.Amount{Value: missing}})
		w.begin()
		g.edit(func(s *machine.DeploymentSpec) { s.Template = template("l") })
		tale := []string{g.rest()}
		w.enough()
		g.end()
		return w.over(tale)
	}
}

func onDelete(w *world) []string {
	g := grouped(w)
	g.deploy(2, machine.Strategy{Type: machine.OnDelete})
	w.begin()
	g.edit(func(s *machine.DeploymentSpec) { s.Template = template("l") })
	for range 5 {
		g.pass()
		<-time.After(time.Minute)
	}
	var tale []string
	old := g.now().Machines
	for _, m := range old {
		tale = append(tale, string(m.Spec.Config))
	}
	for _, m := range old {
		w.store.Delete(m.Key)
		g.until("replaced", func() bool {
			_, works := g.count()
			return works == 2
		})
	}
	tale = append(tale, g.rest())
	w.enough()
	g.end()
	return w.over(tale)
}

func inPlace(w *world) []string {
	g := grouped(w)
	g.deploy(2, machine.Strategy{Type: machine.InPlace, MaxUnavailable: machine.Amount{Value: 1}})
	before := g.now().Machines
	w.begin()
	g.edit(func(s *machine.DeploymentSpec) { s.Template.Spec.Versions.Kubelet = "v1.36.2" })
	tale := []string{g.rest()}
	for i, m := range g.now().Machines {
		tale = append(tale, fmt.Sprint(m.Name == before[i].Name, m.UID == before[i].UID, m.Incarnation, m.Versions.Kubelet))
	}
	w.enough()
	g.end()
	return w.over(tale)
}

// setScaled is a set without a deployment, which takes over a machine that is there, and of which one is marked to go first.
func setScaled(w *world) []string {
	g := grouped(w)
	s := machine.Set{Key: machine.Key{Namespace: "fleet", Name: "s"}, UID: "uid-s", Generation: 1, Created: time.Now()}
	s.Spec = machine.SetSpec{Replicas: 1, Selector: map[string]string{"pool": "a"}, Template: template("s")}
	m := worker("old")
	m.Labels, m.Spec = s.Spec.Template.Labels, s.Spec.Template.Spec
	w.store.Put(m)
	w.running(m.Key)
	w.begin()
	g.put(s)
	var tale []string
	for _, n := range []int{1, 3, 1} {
		now := g.sets["s"]
		if now.Spec.Replicas = n; n == 1 && len(tale) > 0 {
			w.store.Edit(m.Key, func(m *machine.Machine) { m.Annotations = map[string]string{machine.DeleteAnnotation: ""} })
		}
		now.Generation++
		g.put(now)
		g.ceiling, g.floor = max(g.ceiling, n), min(g.floor, n)
		g.until("at rest", func() bool {
			all, works := g.count(func(m machine.Machine) bool { return m.Phase == machine.PhaseRunning && m.Owner.UID == s.UID })
			return works == n && all == n && g.sets["s"].Status.Available == n
		})
		g.ceiling, g.floor = n, n
		_, err := w.store.Live(w.t.Context(), m.Key)
		tale = append(tale, fmt.Sprint(n, " machines, ", len(w.cloud.Instances()), " instances, the old one: ", err == nil))
	}
	now := g.sets["s"]
	now.Spec.Replicas, g.floor = 0, 0
	g.put(now)
	g.until("empty", func() bool { return len(g.now().Machines) == 0 })
	g.pass()
	return w.over(tale)
}

// R-MA-02 and R-MA-09: a controller is frozen before each call that lets a pool grow, while others shrink it to nothing. Then the call goes out late: what it makes goes
// again, and in the end nothing is left.
func TestPoolEndsWhileItGrows(t *testing.T) {
	grow := func(t *testing.T, at int) (trace []string) {
		w := newWorld(t)
		g := grouped(w)
		g.deploy(1, machine.Strategy{})
		w.begin()
		w.at = func(n int) {
			if n == at {
				first, group := w.ctl, w.group
				w.start()
				g.end()
				w.second, w.secondGroup = first, group
			}
		}
		g.edit(func(s *machine.DeploymentSpec) { s.Replicas = 3 })
		for range 40 {
			g.settle()
			g.pass()
			<-time.After(5 * time.Second)
		}
		trace, w.at = w.trace, nil
		g.end()
		w.clean()
		return trace
	}
	var calls []string
	synctest.Test(t, func(t *testing.T) { calls = grow(t, -1) })
	done := 0
	for i := 0; i < len(calls) && !t.Failed(); i++ {
		if !reads[calls[i]] {
			done++
			synctest.Test(t, func(t *testing.T) { grow(t, 2*i) })
		}
	}
	t.Logf("frozen before %d of %d calls", done, len(calls))
}
