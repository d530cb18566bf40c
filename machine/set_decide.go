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

// DecideSet says what a set needs next. It is pure. As long as one process at a time carries out what it says, there are never more machines than
// replicas by its doing, whatever that process has missed and wherever it is killed: what it does not see it counts by its name, and it makes and deletes
// nothing without a view that is Live.
func DecideSet(v SetView) SetDecision {
	p := newSetPass(v)
	p.count()
	shown := p.s.clone()
	d := p.decide()
	d.Status = p.s
	if !v.Live && (d.acts() || !p.s.sameIntent(shown)) {
		shown.Message = p.s.Message
		d = SetDecision{Status: shown, NeedLive: true}
	}
	d.Status.Observed = v.Set.Generation
	d.Store = !d.Status.equal(v.Set.Status)
	d.Size = d.Status.Replicas + len(d.Status.Reserved)
	d.After = p.after
	return d
}

func (d SetDecision) acts() bool { return len(d.Adopt)+len(d.Create)+len(d.Delete) > 0 }

// A setPass is one decision under way.
type setPass struct {
	SetView
	s SetStatus
	// owned are the set's own machines; free have no owner and would be, lost belong to a set of this name that is no more.
	owned, free, lost []standing
	// total is what counts against the replicas: owned, selected, and reserved. alive are owned and not deleted, joining those of them that never
	// had a Node.
	total, alive, joining int
	names                 map[string]bool
	after                 time.Duration
}

func newSetPass(v SetView) *setPass {
	p := &setPass{SetView: v, s: v.Set.Status.clone(), names: map[string]bool{}}
	if p.Matches == nil {
		p.Matches = func(labels map[string]string) bool { return selects(v.Set.Spec.Selector, labels) }
	}
	return p
}

// selects reports whether labels has all of the selector, which is not empty.
func selects(selector, labels map[string]string) bool {
	for k, want := range selector {
		if got, ok := labels[k]; !ok || got != want {
			return false
		}
	}
	return len(selector) > 0
}

// count sums up what is there.
func (p *setPass) count() {
	p.s.Replicas, p.s.Labeled, p.s.Ready, p.s.Available = 0, 0, 0, 0
	for i := range p.Machines {
		if m := &p.Machines[i]; m.Namespace == p.Set.Namespace {
			p.sort(m)
		}
	}
	p.s.Reserved = slices.DeleteFunc(p.s.Reserved, func(r Reservation) bool { return p.names[r.Name] })
	for _, r := range p.s.Reserved {
		p.names[r.Name] = true
	}
	p.total += len(p.s.Reserved)
	p.s.Failure, p.s.Message = p.failure(), ""
}

// sort puts one machine where it belongs.
func (p *setPass) sort(m *Machine) {
	p.names[m.Name] = true
	selected := p.Matches(m.Labels)
	owned := m.Owner.UID != "" && m.Owner.UID == p.Set.UID
	if !owned && !selected {
		return
	}
	p.total++
	s := stand(m, p.Nodes, p.Set.Spec.MinReady, p.Now)
	switch {
	case owned:
		p.own(s, selected)
	case s.deleting():
	case m.Owner == Owner{}:
		p.free = append(p.free, s)
	case m.Owner.Name == p.Set.Name:
		p.lost = append(p.lost, s)
	}
}

func (p *setPass) own(s standing, selected bool) {
	p.owned = append(p.owned, s)
	p.s.Replicas++
	p.s.Labeled += one(selected)
	p.s.Ready += one(s.ready)
	p.s.Available += one(s.available)
	if s.readyIn > 0 && (p.after == 0 || s.readyIn < p.after) {
		p.after = s.readyIn
	}
	if !s.deleting() {
		p.alive++
		p.joining += one(s.Node == nil)
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// failure is the oldest of those of the machines, with how many there are.
func (p *setPass) failure() *Failure {
	if p.Refused != nil {
		return p.Refused
	}
	var failed []*Machine
	for _, s := range p.owned {
		if s.Failure != nil && !s.deleting() {
			failed = append(failed, s.Machine)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	m := slices.MinFunc(failed, func(a, b *Machine) int {
		return cmp.Or(a.Failure.Since.Compare(b.Failure.Since), cmp.Compare(a.Name, b.Name))
	})
	f := *m.Failure
	f.Message = fmt.Sprintf("%d of %d machines; %s: %s", len(failed), len(p.owned), m.Name, f.Message)
	return &f
}

func (p *setPass) decide() SetDecision {
	if why := p.stopped(); why != "" {
		p.s.Message = why
		return SetDecision{}
	}
	if d := p.adopt(); len(d.Adopt) > 0 {
		return d
	}
	p.inherit()
	if n := p.alive - p.Set.Spec.Replicas; n > 0 {
		return p.shrink(n)
	}
	return p.grow()
}

// stopped says why nothing may be done.
func (p *setPass) stopped() string {
	spec := p.Set.Spec
	switch {
	case !p.Set.Deleted.IsZero():
		return "the set is being deleted"
	case p.Set.UID == "":
		return "the set has no UID: nothing can belong to it"
	case spec.Replicas < 0:
		return fmt.Sprintf("spec.replicas is %d: want at least 0", spec.Replicas)
	case !p.Matches(spec.Template.Labels):
		return "the labels of the template are not those of the selector, or the selector is empty"
	case spec.Paused:
		return "paused by spec.paused"
	case (p.Restored || len(p.lost) > 0) && p.Set.Annotations[adoptedAnnotation] != p.Set.UID:
		return fmt.Sprintf("restored from a copy, with %d machines that had another set: nothing is created or deleted until the annotation %s is %q",
			len(p.lost), adoptedAnnotation, p.Set.UID)
	}
	return ""
}

// adopt takes over what is selected and belongs to nobody. Nothing else is done until that is seen.
func (p *setPass) adopt() (d SetDecision) {
	for _, s := range p.free {
		d.Adopt = append(d.Adopt, Choice{s.Key, s.UID, s.Version, "selected, and without an owner"})
	}
	for _, s := range p.lost {
		d.Adopt = append(d.Adopt, Choice{s.Key, s.UID, s.Version, "restored: its set is known by another UID"})
	}
	return d
}

// inherit notes who is to stand in for machines that were given up, while they are still seen.
func (p *setPass) inherit() {
	for _, s := range p.owned {
		lineage, err := strconv.Atoi(s.Annotations[givenUpAnnotation])
		if err == nil && lineage > 0 && !p.hasHeir(s.Name) {
			p.s.Heirs = append(p.s.Heirs, Heir{Of: s.Name, Lineage: lineage})
		}
	}
	if p.total >= p.Set.Spec.Replicas { // a set that has shrunk needs no heir
		p.s.Heirs = slices.DeleteFunc(p.s.Heirs, func(h Heir) bool { return !p.names[h.Of] })
	}
}

func (p *setPass) hasHeir(name string) bool {
	return slices.ContainsFunc(p.s.Heirs, func(h Heir) bool { return h.Of == name }) ||
		slices.ContainsFunc(p.s.Reserved, func(r Reservation) bool { return r.Heir.Of == name }) ||
		slices.ContainsFunc(p.owned, func(s standing) bool { return s.Annotations[replacementOfAnnotation] == name })
}

// shrink chooses n machines. What is only reserved is given up before.
func (p *setPass) shrink(n int) (d SetDecision) {
	p.s.Reserved = nil
	d.Delete, d.Kept = picker{p.Set.Spec.Order, p.Cost}.pick(p.owned, n)
	if missing := n - len(d.Delete); missing > 0 {
		p.s.Message = fmt.Sprintf("%d machines more than replicas: %s", missing, keptWords(d.Kept))
	}
	return d
}

func keptWords(kept []Choice) string {
	if len(kept) == 0 {
		return "none may go"
	}
	return fmt.Sprintf("%s is %s", kept[0].Key, kept[0].Reason)
}

// grow reserves what is missing, and creates what is reserved.
func (p *setPass) grow() (d SetDecision) {
	missing := p.Set.Spec.Replicas - p.total
	for ; missing < 0 && len(p.s.Reserved) > 0; missing++ {
		p.s.Reserved = p.s.Reserved[:len(p.s.Reserved)-1]
	}
	switch _, held := p.Set.Annotations[NoCreateAnnotation]; {
	case held:
		p.s.Reserved = nil
		return d
	case p.Refused != nil:
		p.s.Message = "the provider's group does not take the size: " + p.Refused.Message
		return d
	}
	if limit := p.Set.Spec.MaxProvisioning; limit > 0 {
		if room := limit - p.joining - len(p.s.Reserved); missing > room {
			p.s.Message = fmt.Sprintf("%d machines to be created wait: at most %d are on their way at once", missing-max(room, 0), limit)
			missing = room
		}
	}
	for range missing {
		p.s.Reserved = append(p.s.Reserved, p.reserve())
	}
	d.Create = slices.Clone(p.s.Reserved)
	return d
}

// reserve makes a name that nobody has had.
func (p *setPass) reserve() (r Reservation) {
	for r.Name == "" || p.names[r.Name] {
		p.s.Serial++
		r.Name = childName(p.Set.Name, 6, "machine", p.Set.UID, strconv.FormatInt(p.s.Serial, 10))
	}
	p.names[r.Name] = true
	if len(p.s.Heirs) > 0 {
		r.Heir, p.s.Heirs = p.s.Heirs[0], p.s.Heirs[1:]
	}
	return r
}
