// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/rollout/protocol"
)

// serialKey is what the slots of serial nodes count for, of all rollouts.
const serialKey = "serial"

// amount is a number, or a percentage of n, rounded down and at least 1.
func amount(v intstr.IntOrString, n int) int {
	if v.Type == intstr.Int {
		return max(1, int(v.IntVal))
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(v.StrVal, "%"))
	if err != nil {
		return 1 // Validate has refused it
	}
	return max(1, n*percent/100)
}

// capsOf are the caps that bind in a stage, as numbers: those of the policy and of the stage, and that of serial nodes.
func (p *plan) capsOf(stage int) []protocol.Cap {
	const others = 4 // the total, that of serial nodes, and the classes
	caps := make([]protocol.Cap, 0, len(p.policy.Groups)+len(p.zones)+others)
	caps = append(caps, protocol.Cap{Key: serialKey, Max: 1, From: "the rule for serial nodes"})
	if !p.policy.bounded() {
		from := "the default"
		if len(p.policy.Caps) > 0 {
			from += ", as no cap of the policy covers every node"
		}
		caps = append(caps, protocol.Cap{Max: 1, From: from})
	}
	for i, c := range p.policy.Caps {
		caps = p.numbers(caps, c, "caps", i)
	}
	if stage < len(p.stages) {
		at := fmt.Sprintf("stages[%d].caps", stage)
		for j, c := range p.stages[stage].Caps {
			caps = p.numbers(caps, c, at, j)
		}
	}
	return caps
}

// bounded reports whether the policy's own caps leave no node without one: only one without a key, as each of the scope Total, is sure to. Without it
// whatever the others don't name would go all at once.
func (policy *Policy) bounded() bool {
	return slices.ContainsFunc(policy.Caps, func(c Cap) bool { return c.Key == "" })
}

// numbers adds what a cap comes to, for each of the keys that it is about.
func (p *plan) numbers(caps []protocol.Cap, c Cap, field string, i int) []protocol.Cap {
	from := fmt.Sprintf("%s[%d]", field, i)
	add := func(key, name string, n int) {
		if c.Key == "" || c.Key == name {
			caps = append(caps, protocol.Cap{Key: key, Max: amount(c.Max, n), From: from})
		}
	}
	switch c.Scope {
	case Total:
		add("", "", p.sizes.domain)
	case ByGroup:
		for g := range p.policy.Groups {
			add(p.keyOf.groups[g], p.policy.Groups[g].Name, p.sizes.groups[g])
		}
	case ByZone:
		for z, name := range p.zones {
			add(p.keyOf.zones[z], name, p.sizes.zones[z])
		}
	case ByClass:
		add(classKey(Intrusive), string(Intrusive), p.sizes.intrusive)
		add(classKey(NonIntrusive), string(NonIntrusive), p.sizes.nonIntrusive)
	}
	return caps
}

func classKey(c Class) string { return "class/" + string(c) }

// keyNames are the keys of the groups and zones, by their numbers.
type keyNames struct{ groups, zones []string }

// name finds the names of the keys.
func (p *plan) name() {
	p.keyOf = keyNames{groups: make([]string, len(p.policy.Groups)), zones: make([]string, len(p.zones))}
	for i := range p.keyOf.groups {
		p.keyOf.groups[i] = "group/" + p.policy.Groups[i].Name
	}
	for i, zone := range p.zones {
		p.keyOf.zones[i] = "zone/" + zone
	}
}

// limits are the caps and what is used of them.
type limits struct {
	all    []protocol.Cap
	absent []protocol.Absent
	// use is what is used of each key that a cap is about.
	use map[string]*usage
	// sets are the combinations of keys that there are.
	sets map[setOf]*keySet
	// shared are reasons that are true of many nodes.
	shared map[Reason]*Why
	// serialUp is how many serial nodes are available.
	serialUp int
}

// A usage is how much of the strictest cap of a key is used.
type usage struct {
	cap  protocol.Cap
	used int
	why  *Why
}

// A setOf says what a slot counts for.
type setOf struct {
	group  int16
	zone   int32
	class  Class
	serial bool
}

// A keySet is what a slot counts for, and the caps that it has to keep.
type keySet struct {
	keys []string
	caps []protocol.Cap
	uses []*usage
}

func (l *limits) share(r Reason, message string) *Why {
	if l.shared == nil {
		l.shared = map[Reason]*Why{}
	}
	why := l.shared[r]
	if why == nil || why.Message != message {
		why = &Why{Reason: r, Message: message}
		l.shared[r] = why
	}
	return why
}

// limit counts what is used of each cap: by slots of anybody, and by nodes that are away without one.
func (p *plan) limit(own []protocol.Cap) {
	l := &p.limits
	l.all = slices.Concat(own, p.snapshot.OtherCaps)
	l.use, l.sets = make(map[string]*usage, len(l.all)), reuseMap(&p.mem.sets, 0)
	for _, c := range l.all {
		if u := l.use[c.Key]; u == nil {
			l.use[c.Key] = &usage{cap: c}
		} else if c.Max < u.cap.Max {
			u.cap = c
		}
	}
	for i := range p.ledger.Slots {
		l.spend("")
		for _, key := range p.ledger.Slots[i].Keys {
			l.spend(key)
		}
	}
	for i := range p.nodes {
		m := &p.nodes[i]
		if slotted := m.other || m.flight >= 0 && p.flights[m.flight].do != protocol.EventRelease; slotted {
			continue
		}
		if m.serial && m.node.Away == "" && m.class != lost {
			l.serialUp++
		}
		if m.node.Away == "" {
			continue
		}
		keys := p.set(setOf{group: m.group, zone: m.zone, class: Intrusive}).keys
		l.absent = append(l.absent, protocol.Absent{UID: m.node.UID, Keys: keys})
		l.spend("")
		for _, key := range keys {
			l.spend(key)
		}
	}
}

func (l *limits) spend(key string) {
	if u := l.use[key]; u != nil {
		u.used++
	}
}

// set is what nodes of a kind count for.
func (p *plan) set(of setOf) *keySet {
	if s := p.limits.sets[of]; s != nil {
		return s
	}
	s := p.mem.keySet()
	s.keys = p.keys(of)
	for _, c := range p.limits.all {
		if c.Key == "" || slices.Contains(s.keys, c.Key) {
			s.caps = append(s.caps, c)
		}
	}
	if u := p.limits.use[""]; u != nil {
		s.uses = append(s.uses, u)
	}
	for _, key := range s.keys {
		if u := p.limits.use[key]; u != nil {
			s.uses = append(s.uses, u)
		}
	}
	p.limits.sets[of] = s
	return s
}

// keys are what a slot counts for, besides the total. All slots of a kind share them.
func (p *plan) keys(of setOf) []string {
	if keys, known := p.keyed[of]; known {
		return keys
	}
	if p.keyed == nil {
		p.keyed = reuseMap(&p.mem.keyed, 0)
	}
	keys := append(make([]string, 0, 4), classKey(of.class), p.keyOf.zones[of.zone])
	if of.group >= 0 {
		keys = append(keys, p.keyOf.groups[of.group])
	}
	if of.serial {
		keys = append(keys, serialKey)
	}
	p.keyed[of] = keys
	return keys
}

// full says which cap has no room for one more of the set, or nil.
func (s *keySet) full() *Why {
	for _, u := range s.uses {
		if u.used < u.cap.Max {
			continue
		}
		if u.why == nil {
			u.why = u.explain()
		}
		return u.why
	}
	return nil
}

func (u *usage) explain() *Why {
	reason, what := reasonCap, "nodes of the domain"
	switch {
	case u.cap.Key == serialKey:
		reason, what = reasonSerial, "nodes that go one at a time"
	case u.cap.Key != "":
		what = fmt.Sprintf("nodes of %q", u.cap.Key)
	}
	return &Why{Reason: reason, Message: fmt.Sprintf("%d %s are away, the limit is %d by %s", u.used, what, u.cap.Max, u.cap.From)}
}
