// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"time"
)

// DecideHealth says what is done about unhealthy machines. It is pure. What is not known is not unhealthy; a machine that something of ours disturbs,
// that is paused or in quarantine, is left alone. An attempt is stored before its remedy, and the remedy comes again in each pass until its time is
// over. If it has not helped by then, the next rung follows, and after the last one nothing, until the machine is healthy by itself.
func DecideHealth(v HealthView) HealthDecision {
	p := &healthPass{HealthView: v, s: HealthStatus{Attempts: slices.Clone(v.Check.Status.Attempts)}, ladder: v.Check.Spec.Ladder}
	if len(p.ladder) == 0 {
		p.ladder = defaultLadder()
	}
	p.examine()
	p.s.Message = p.halted()
	p.forget()
	for i := range p.patients {
		p.treat(&p.patients[i])
	}
	p.s.Observed = v.Check.Generation
	p.d.Status, p.d.Store, p.d.After = p.s, !p.s.equal(v.Check.Status), p.after
	return p.d
}

// defaultLadder is what is done if nothing is said: a reboot, and then another machine.
func defaultLadder() []Rung { return []Rung{{Kind: RemedyReboot}, {Kind: RemedyReplace}} }

// A healthPass is one decision under way.
type healthPass struct {
	HealthView
	s        HealthStatus
	d        HealthDecision
	ladder   []Rung
	patients []patient
	after    time.Duration
}

// A patient is a machine of the check.
type patient struct {
	*Machine
	finding
}

// examine looks at every machine of the check.
func (p *healthPass) examine() {
	spec := &p.Check.Spec
	for i := range p.Machines {
		m := &p.Machines[i]
		matches := selects(spec.Selector, m.Labels)
		if p.Matches != nil {
			matches = p.Matches(m.Labels)
		}
		if !matches || m.Namespace != p.Check.Namespace || !m.Deleted.IsZero() {
			continue
		}
		f := p.diagnose(m)
		p.patients = append(p.patients, patient{m, f})
		p.s.Expected++
		p.s.Healthy += one(f.state == healthy)
		p.s.Unhealthy += one(f.state == unhealthy)
		p.look(f.in)
	}
	slices.SortFunc(p.patients, func(a, b patient) int { return compareKeys(a.Key, b.Key) })
}

// look has the next look be no later.
func (p *healthPass) look(in time.Duration) {
	if in > 0 && (p.after == 0 || in < p.after) {
		p.after = in
	}
}

// halted says why nothing may be done to any machine.
func (p *healthPass) halted() string {
	spec := &p.Check.Spec
	limit := spec.MaxUnhealthy
	if limit == (Amount{}) {
		limit = Amount{defaultMaxUnhealthy, true}
	}
	switch most := limit.Up(p.s.Expected); {
	case spec.Paused:
		return "paused by spec.paused"
	case limit.check() != nil:
		return "spec.maxUnhealthy: " + limit.check().Error()
	case p.s.Unhealthy > most:
		return fmt.Sprintf("%d of %d machines are unhealthy, more than %s: nothing is done, as it may not be them", p.s.Unhealthy, p.s.Expected, limit)
	}
	return ""
}

// forget drops attempts on machines that are no more, or no more those of the check, and disruptions of those that somebody has entered for decommissioning or put into
// quarantine: nobody waits for what was begun. One that is deleted is disturbed until it is gone.
func (p *healthPass) forget() {
	there, left := map[string]bool{}, map[string]bool{}
	for _, m := range p.Machines {
		there[m.UID] = !m.Deleted.IsZero()
	}
	for _, m := range p.patients {
		_, quarantined := m.Annotations[QuarantineAnnotation]
		there[m.UID], left[m.UID] = true, quarantined || m.Spec.Decommission
	}
	p.s.Attempts = slices.DeleteFunc(p.s.Attempts, func(a Attempt) bool { return !there[a.UID] || left[a.UID] && a.Loan() != "" })
}

func (p *healthPass) attempt(m *Machine) int {
	return slices.IndexFunc(p.s.Attempts, func(a Attempt) bool { return a.UID == m.UID })
}

// treat does what one machine needs.
func (p *healthPass) treat(m *patient) {
	i := p.attempt(m.Machine)
	switch {
	case m.state == unhealthy:
		p.mend(m, i)
	case i < 0 || m.state == unknown:
	case m.state == healthy:
		p.recover(i)
	default:
		p.s.Attempts[i].Healthy = time.Time{}
	}
}

// recover waits until a machine has been healthy for long enough to call it mended.
func (p *healthPass) recover(i int) {
	a := &p.s.Attempts[i]
	if a.Healthy.IsZero() {
		a.Healthy = p.Now
	}
	left := a.Healthy.Add(or(p.Check.Spec.Cooldown, defaultCooldown)).Sub(p.Now)
	if left <= 0 {
		p.s.Attempts = slices.Delete(p.s.Attempts, i, i+1)
		return
	}
	p.look(left)
}

// mend goes on with the attempt under way, or begins the next.
func (p *healthPass) mend(m *patient, i int) {
	next := Attempt{Key: m.Key, UID: m.UID, Since: p.Now, Reason: m.why, Try: 1}
	if i >= 0 {
		a := &p.s.Attempts[i]
		a.Healthy = time.Time{}
		if p.underWay(m, a) {
			return
		}
		next.Rung, next.Try = a.Rung, a.Try+1 // at the end of the ladder Try is 0
	}
	if p.s.Message != "" {
		p.skip(m, p.s.Message)
		return
	}
	why := p.climb(m, &next)
	switch {
	case next.Kind == "" && i >= 0 && p.s.Attempts[i].Kind == "":
		p.skip(m, p.s.Attempts[i].Reason)
		return
	case next.Kind == "":
		next.Reason = why
		p.skip(m, why)
	case disrupts(next.Kind):
		if wait := p.charge(m, i >= 0 && p.s.Attempts[i].Loan() != ""); wait != "" {
			p.skip(m, fmt.Sprintf("%s waits for %s", next.Kind, wait))
			p.look(budgetAgain)
			return
		}
	}
	if i < 0 {
		p.s.Attempts = append(p.s.Attempts, next)
	} else {
		p.s.Attempts[i] = next
	}
	p.issue(m, &next)
}

// budgetAgain is when to look again for a remedy that waits for its turn.
const budgetAgain = 30 * time.Second

// charge takes what the disruption of a machine needs from the budget; held is that it has it already. wait is what comes first.
func (p *healthPass) charge(m *patient, held bool) (wait string) {
	other := slices.IndexFunc(p.Others, func(a Attempt) bool { return a.UID == m.UID && a.Loan() != "" })
	switch refused := p.Refused[m.UID]; {
	case other >= 0:
		return fmt.Sprintf("the %s of another health check", p.Others[other].Kind)
	case refused != "":
		return "the disruption budget: " + refused
	case held:
		return ""
	case p.Budget <= 0:
		return "the disruption budget"
	}
	p.Budget--
	return ""
}

// underWay gives an attempt its time.
func (p *healthPass) underWay(m *patient, a *Attempt) bool {
	if a.Kind == "" || a.Rung >= len(p.ladder) {
		return false
	}
	left := a.Since.Add(or(p.ladder[a.Rung].Wait, defaultWait)).Sub(p.Now)
	if left <= 0 {
		return false
	}
	p.look(left)
	if p.s.Message == "" {
		p.issue(m, a)
	}
	return true
}

func disrupts(k RemedyKind) bool { return k == RemedyReboot || k == RemedyReplace }

func (p *healthPass) skip(m *patient, why string) {
	p.d.Skipped = append(p.d.Skipped, Choice{m.Key, m.UID, m.Version, why})
}
