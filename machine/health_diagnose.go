// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// A state is how a machine is.
type state int

const (
	unknown   state = iota // nobody can tell, or it is left alone
	healthy                // for all that is known
	ailing                 // not for long enough yet
	unhealthy              // for long enough
)

// A finding is what was found of one machine; in is when it may be unhealthy, if it stays as it is.
type finding struct {
	state state
	why   string
	in    time.Duration
}

// diagnose looks at one machine.
func (p *healthPass) diagnose(m *Machine) finding {
	_, quarantined := m.Annotations[QuarantineAnnotation]
	if quarantined || m.Spec.Paused || m.Spec.Decommission || disturbed(m) {
		return finding{}
	}
	if f := m.Failure; f != nil && (f.Reason == ReasonInstanceLost || f.Reason == ReasonInstanceBroken) {
		return finding{state: unhealthy, why: f.Reason + ": " + f.Message}
	}
	if !p.NodesKnown {
		return finding{}
	}
	worst := p.startup(m)
	rules := p.Check.Spec.Unhealthy
	if len(rules) == 0 {
		rules = []UnhealthyWhen{{Condition: "Ready", Status: "False", For: defaultUnhealthy}, {Condition: "Ready", Status: "Unknown", For: defaultUnhealthy}}
	}
	for _, r := range rules {
		worst = worst.or(p.apply(r, m))
	}
	return worst
}

// or returns the worse of two.
func (f finding) or(g finding) finding {
	if g.state > f.state || g.state == ailing && f.state == ailing && g.in < f.in {
		return g
	}
	return f
}

// since is unhealthy after a time.
func (p *healthPass) since(t time.Time, limit time.Duration, why string) finding {
	if left := t.Add(limit).Sub(p.Now); left > 0 {
		return finding{state: ailing, in: left}
	}
	return finding{state: unhealthy, why: fmt.Sprintf("%s for more than %s", why, limit)}
}

// startup looks whether there is a Node. A machine that its provider can't make is not unhealthy: another one would be asked for in vain too.
func (p *healthPass) startup(m *Machine) finding {
	limit := or(p.Check.Spec.StartupTimeout, defaultStartupTimeout)
	node, known := p.Nodes[m.Key]
	_, ready := node.ready()
	switch {
	case m.Node == nil && m.Instance == nil && m.Failure != nil:
		return finding{}
	case m.Node == nil && (m.Step.Name == StepJoining || m.Incarnation > 1):
		return p.since(m.Step.Since, limit, "has no Node")
	case m.Node == nil:
		return p.since(m.Created, limit, "has no Node")
	case !known:
		return finding{}
	case node.Gone:
		return p.since(node.Since, limit, "Node "+strconv.Quote(m.Node.Name)+" is gone")
	case ready:
		return finding{state: healthy}
	}
	return finding{}
}

// apply looks whether one rule holds.
func (p *healthPass) apply(r UnhealthyWhen, m *Machine) finding {
	if r.Phase != "" && r.Phase == m.Phase {
		since := m.Step.Since
		if m.Failure != nil && m.Failure.Since.After(since) {
			since = m.Failure.Since
		}
		return p.since(since, r.For, "phase "+string(r.Phase))
	}
	if m.Node == nil || r.Condition == "" {
		return finding{}
	}
	for _, c := range p.Nodes[m.Key].Conditions {
		if c.Type == r.Condition && c.Status == r.Status {
			return p.since(c.Since, r.For, c.Type+" is "+c.Status)
		}
	}
	return finding{}
}

// climb finds the next rung that can be had, from the one that next names. Its Kind stays empty at the end of the ladder; then it says why.
func (p *healthPass) climb(m *patient, next *Attempt) (why string) {
	for ; next.Rung < len(p.ladder); next.Rung, next.Try = next.Rung+1, 1 {
		rung := p.ladder[next.Rung]
		if next.Try > max(rung.Tries, 1) {
			continue
		}
		if no := p.cant(rung.Kind, m.Machine); no != "" {
			why = no
			continue
		}
		next.Kind = rung.Kind
		return ""
	}
	next.Try = 0
	return cmp.Or(why, "nothing has helped, and there is no other remedy")
}

// cant says why a remedy can't be had.
func (p *healthPass) cant(k RemedyKind, m *Machine) string {
	most := p.Check.Spec.MaxLineage
	if most == 0 {
		most = defaultMaxLineage
	}
	switch {
	case k == RemedyRestartAgent && p.CanRestartAgent, k == RemedyReboot && p.CanReboot, k == RemedyQuarantine:
		return ""
	case k != RemedyReplace:
		return fmt.Sprintf("remedy %q can't be had", k)
	case m.Owner.UID == "":
		return "it belongs to no set that would make another one"
	case Protected(m.Spec.Roles):
		return "part of the control plane: it ends only if somebody enters it by spec.decommission"
	case p.lineage(m) >= most:
		return fmt.Sprintf("%d machines in a row were given up: it is what they are made of", p.lineage(m))
	}
	return ""
}

// lineage is how many were given up before, unless the machine has shown since that what it is made of is good.
func (p *healthPass) lineage(m *Machine) int {
	n, err := strconv.Atoi(m.Annotations[LineageAnnotation])
	if err != nil || n < 0 || m.Node != nil && p.brokenAt(m).Sub(m.Created) >= or(p.Check.Spec.Proven, defaultProven) {
		return 0
	}
	return n
}

// brokenAt is when the Node of a machine was seen to be as it is.
func (p *healthPass) brokenAt(m *Machine) time.Time {
	node, at := p.Nodes[m.Key], m.Created
	if node.Gone {
		return node.Since
	}
	for _, c := range node.Conditions {
		if c.Type == "Ready" && c.Since.After(at) {
			at = c.Since
		}
	}
	return at
}

// issue has the remedy of an attempt carried out.
func (p *healthPass) issue(m *patient, a *Attempt) {
	if a.Kind == "" {
		return
	}
	r := Remedy{Choice: Choice{m.Key, m.UID, m.Version, a.Reason}, Kind: a.Kind, ID: a.ID(), Loan: a.Loan()}
	switch a.Kind {
	case RemedyReplace:
		r.Annotations = map[string]string{givenUpAnnotation: strconv.Itoa(p.lineage(m.Machine) + 1)}
	case RemedyQuarantine:
		r.Annotations = map[string]string{QuarantineAnnotation: a.Reason}
	}
	p.d.Remedies = append(p.d.Remedies, r)
}

func (s HealthStatus) equal(o HealthStatus) bool {
	return s.Expected == o.Expected && s.Healthy == o.Healthy && s.Unhealthy == o.Unhealthy && s.Message == o.Message && s.Observed == o.Observed &&
		slices.EqualFunc(s.Attempts, o.Attempts, func(a, b Attempt) bool {
			sameTimes := a.Since.Equal(b.Since) && a.Healthy.Equal(b.Healthy)
			a.Since, a.Healthy, b.Since, b.Healthy = time.Time{}, time.Time{}, time.Time{}, time.Time{}
			return sameTimes && a == b
		})
}
