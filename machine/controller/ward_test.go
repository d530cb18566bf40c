// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// A ward is what groups have of health checks and of the sick.
type ward struct {
	checks map[string]machine.HealthCheck
	// sick are instances by token.
	sick map[string]illness
	// lender is the budget of the health checks; nil is none. While most is set, no more machines than that may be disturbed at a time.
	lender controller.Budget
	most   int
	// reboots are those that were, by ID. said are the reasons for which nothing was begun.
	reboots map[string]bool
	said    []string
}

// An illness makes a Node not ready. A stubborn one survives a reboot.
type illness struct {
	since    time.Time
	stubborn bool
}

func newWard(b controller.Budget) ward {
	return ward{checks: map[string]machine.HealthCheck{}, sick: map[string]illness{}, lender: b, reboots: map[string]bool{}}
}

// A leftBudget knows how much is left.
type leftBudget struct{ *budget }

func (b leftBudget) Left(context.Context) int { return max(0, b.limit-len(b.held)) }

// watch makes a health check of all machines of the pool.
func (g *groups) watch(name string) {
	h := machine.HealthCheck{Key: machine.Key{Namespace: "fleet", Name: name}, UID: "uid-" + name, Version: g.next(), Generation: 1}
	h.Spec = machine.HealthSpec{
		Selector: map[string]string{"pool": "a"}, MaxUnhealthy: machine.Amount{Value: 50, Percent: true}, Cooldown: time.Minute,
		Unhealthy: []machine.UnhealthyWhen{{Condition: "Ready", Status: "False", For: time.Minute}},
		Ladder:    []machine.Rung{{Kind: machine.RemedyReboot, Wait: 5 * time.Minute}, {Kind: machine.RemedyReplace}},
	}
	g.checks[name] = h
}

// pool makes a set of so many machines, and waits for it.
func (g *groups) pool(n int) {
	s := machine.Set{Key: machine.Key{Namespace: "fleet", Name: "s"}, UID: "uid-s", Generation: 1, Created: time.Now()}
	s.Spec = machine.SetSpec{Replicas: n, Selector: map[string]string{"pool": "a"}, Template: template("s")}
	g.put(s)
	g.until("at rest", func() bool {
		all, works := g.count()
		return all == n && works == n
	})
}

// empty ends the pool.
func (g *groups) empty() {
	g.most, g.floor = 0, 0
	now := g.sets["s"]
	now.Spec.Replicas = 0
	g.put(now)
	g.until("empty", func() bool { return len(g.now().Machines) == 0 })
	g.pass()
}

// ail makes a machine sick.
func (g *groups) ail(m machine.Machine, stubborn bool) {
	g.sick[m.Token] = illness{time.Now(), stubborn}
}

// well reports whether so many machines are there, nobody is sick, and no remedy is on record.
func (g *groups) well(n int) bool {
	for _, m := range g.now().Machines {
		if _, is := g.sick[m.Token]; is {
			return false
		}
	}
	all, works := g.count()
	return all == n && works == n && len(g.attempts()) == 0
}

// attempts are the machines that are being disturbed by what is on record.
func (g *groups) attempts() map[string]bool {
	all := map[string]bool{}
	for _, h := range g.checks {
		for _, a := range h.Status.Attempts {
			if a.Loan() != "" {
				all[a.UID] = true
			}
		}
	}
	return all
}

// disturbed checks that no more machines are disturbed than may be: by remedies, and by their end, as long as they have an instance.
func (g *groups) disturbed(call string) {
	if g.most == 0 {
		return
	}
	var all []string
	tried, has := g.attempts(), map[string]bool{}
	for _, i := range g.w.cloud.Instances() {
		has[i.Token] = true
	}
	for _, m := range g.now().Machines {
		if has[m.Token] && (tried[m.UID] || !m.Deleted.IsZero()) {
			all = append(all, m.UID)
		}
	}
	if len(all) > g.most || len(g.w.budget.held) > g.most {
		g.w.wrong = append(g.w.wrong, fmt.Sprintf("at %s: %v are disturbed, slots are %v, and there may be %d", call, all, g.w.budget.held, g.most))
	}
}

// covered checks that a machine has its slot when it is disturbed.
func (g *groups) covered(what, uid string) {
	if _, has := g.w.budget.held[uid]; g.most > 0 && g.lender != nil && !has {
		g.w.wrong = append(g.w.wrong, fmt.Sprintf("machine %q is %s without a slot: %v", uid, what, g.w.budget.held))
	}
}

// rebooted is a reboot that has come to its end, at least once.
func (g *groups) rebooted(token, id string) {
	if g.reboots[id] {
		return
	}
	g.reboots[id] = true
	for _, m := range g.now().Machines {
		if m.Token == token {
			g.covered("rebooted", m.UID)
		}
	}
	if ill := g.sick[token]; !ill.stubborn {
		delete(g.sick, token)
	}
}

func (g *groups) hear(_ machine.Key, skipped []machine.Choice) {
	for _, c := range skipped {
		g.said = append(g.said, c.Reason)
	}
}

// heard reports whether something was said.
func (g *groups) heard(what string) bool { return strings.Contains(strings.Join(g.said, "\n"), what) }

func (g *groups) PutCheckStatus(_ context.Context, h machine.HealthCheck) (machine.HealthCheck, error) {
	return seen(g.w, "PutCheckStatus", func() (machine.HealthCheck, error) {
		now, there := g.checks[h.Name]
		if !there || now.Version != h.Version {
			return h, controller.ErrConflict
		}
		now.Status, now.Version = h.Status, g.next()
		g.checks[h.Name] = now
		return now, nil
	})
}

func (g *groups) Annotate(_ context.Context, c machine.Choice, annotations map[string]string) (machine.Choice, error) {
	return seen(g.w, "Annotate", func() (machine.Choice, error) {
		err := g.machine(c.Key, c.UID, c.Version, func() {
			g.w.store.Edit(c.Key, func(m *machine.Machine) {
				next := map[string]string{}
				maps.Copy(next, m.Annotations)
				maps.Copy(next, annotations)
				m.Annotations = next
			})
		})
		if err == nil {
			c.Version = g.w.live(c.Key).Version
		}
		return c, err
	})
}
