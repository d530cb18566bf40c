// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// A deploymentPass is one decision under way.
type deploymentPass struct {
	DeploymentView
	s DeploymentStatus
	d DeploymentDecision
	// sets are those of the deployment, oldest revision first. free have no owner and would be, lost belong to a deployment of this name that is no more.
	sets       []*group
	free, lost []*Set
	current    *group
	// frozen means that the present template must not run, and that current is that of another one.
	frozen bool
	// seen are names of machines, taken those of sets.
	seen, taken map[string]bool
	// limit is how many machines there may be, floor how many have to work; working is how many would if all went that is to go.
	limit, floor, working int
	moves                 []Move
	// movable means that machines of old sets are still to be moved.
	movable bool
	// halt is why nothing is done, waits why something isn't.
	halt  string
	waits []string
	after time.Duration
}

// A group is a set with its machines.
type group struct {
	was *Set
	// set is as it should be; why is for what, and empty if it is as it was.
	set Set
	why string
	// held means that the stored set makes no machines.
	held     bool
	machines []standing
	// total counts machines and reservations, alive machines that are not being deleted.
	total, alive int
	// queue are those that may go, in the order in which the set takes them, kept is why another one does not; going is how many of the queue go, by the
	// target that the set has now or will have.
	queue []standing
	kept  string
	going int
	// working is how many work.
	working int
}

// gather sorts sets and machines.
func (p *deploymentPass) gather() {
	for i := range p.Machines {
		p.seen[p.Machines[i].Name] = p.seen[p.Machines[i].Name] || p.Machines[i].Namespace == p.Deployment.Namespace
	}
	for i := range p.Sets {
		if s := &p.Sets[i]; s.Namespace == p.Deployment.Namespace {
			p.sort(s)
		}
	}
	slices.SortFunc(p.sets, func(a, b *group) int {
		return cmp.Or(cmp.Compare(revisionOf(a.was), revisionOf(b.was)), a.was.Created.Compare(b.was.Created), cmp.Compare(a.was.Name, b.was.Name))
	})
}

func (p *deploymentPass) sort(s *Set) {
	d := &p.Deployment
	p.taken[s.Name] = true
	switch selected := selects(d.Spec.Selector, s.Labels); {
	case s.Owner.UID != "" && s.Owner.UID == d.UID:
		p.sets = append(p.sets, p.group(s))
	case !selected || !s.Deleted.IsZero():
	case s.Owner == Owner{}:
		p.free = append(p.free, s)
	case s.Owner.Name == d.Name:
		p.lost = append(p.lost, s)
	}
}

func (p *deploymentPass) group(s *Set) *group {
	g := &group{was: s, set: *s}
	_, g.held = s.Annotations[NoCreateAnnotation]
	g.held = g.held || !s.Deleted.IsZero()
	for i := range p.Machines {
		m := &p.Machines[i]
		if m.Namespace == s.Namespace && (m.Owner.UID == s.UID || m.Owner == Owner{} && selects(s.Spec.Selector, m.Labels)) {
			g.add(stand(m, p.Nodes, p.Deployment.Spec.MinReady, p.Now))
		}
	}
	for _, r := range s.Status.Reserved {
		g.total += one(!p.seen[r.Name])
	}
	g.queue, g.kept = picker{p.Deployment.Spec.Order, p.Cost}.queue(g.machines)
	g.going = min(max(0, g.alive-s.Spec.Replicas), len(g.queue))
	return g
}

func (g *group) add(s standing) {
	g.working += one(s.works())
	g.machines = append(g.machines, s)
	g.total++
	g.alive += one(!s.deleting())
}

// bound is how many machines the set can come to have without us.
func (g *group) bound() int {
	if g.held {
		return g.total
	}
	return max(g.total, g.was.Spec.Replicas)
}

// change has the set written, unless it is being deleted.
func (g *group) change(why string, to func(s *Set)) {
	if !g.set.Deleted.IsZero() {
		return
	}
	if g.why == "" {
		g.set.Annotations = maps.Clone(g.set.Annotations)
		if g.set.Annotations == nil {
			g.set.Annotations = map[string]string{}
		}
		g.why = why
	}
	to(&g.set)
}

// mark keeps old sets from making machines, and has the revision of the present template be the newest.
func (p *deploymentPass) mark() {
	newest := int64(0)
	for _, g := range p.sets {
		if g == p.current {
			continue
		}
		newest = max(newest, revisionOf(g.was))
		if !g.held {
			g.change("it is an old one, and makes no more machines", func(s *Set) { s.Annotations[NoCreateAnnotation] = "old" })
		}
	}
	switch {
	case p.current == nil:
	case p.frozen || revisionOf(p.current.was) > newest:
		p.s.Revision = revisionOf(p.current.was)
	default:
		p.s.Revision = newest + 1
		p.current.change("its template is the present one again", func(s *Set) { s.Annotations[RevisionAnnotation] = strconv.FormatInt(newest+1, 10) })
	}
}

// marked reports whether every other set was seen to make no more machines.
func (p *deploymentPass) marked() bool {
	return !slices.ContainsFunc(p.sets, func(g *group) bool { return g != p.current && !g.held })
}

// create makes the set of the present template. It begins without machines, and makes none.
func (p *deploymentPass) create() {
	d := &p.Deployment
	if p.Skew != "" {
		p.wait("%s", p.Skew)
		return
	}
	hash, name := d.Spec.Template.Hash(), ""
	label := hash
	for n := p.s.Collisions; name == "" || p.taken[name]; n++ {
		p.s.Collisions = n
		if n > 0 {
			label = hash + "-" + strconv.Itoa(n)
		}
		name = childName(d.Name, 8, "set", label)
	}
	for _, g := range p.sets {
		p.s.Revision = max(p.s.Revision, revisionOf(g.was)+1)
	}
	p.s.Revision = max(p.s.Revision, 1)
	t := d.Spec.Template
	t.Labels, t.Annotations, t.Spec = with(with(t.Labels, hashLabel, label), DeploymentLabel, labelOf(d.Name)), maps.Clone(t.Annotations), t.Spec.forOne()
	p.d.Create = &Set{
		Key:         Key{Namespace: d.Namespace, Name: name},
		Labels:      maps.Clone(t.Labels),
		Annotations: map[string]string{RevisionAnnotation: strconv.FormatInt(p.s.Revision, 10), NoCreateAnnotation: "new"},
		Owner:       Owner{UID: d.UID, Name: d.Name},
		Spec: SetSpec{Selector: with(d.Spec.Selector, hashLabel, label), Template: t,
			Order: d.Spec.Order, MaxProvisioning: d.Spec.MaxProvisioning, MinReady: d.Spec.MinReady},
	}
}

// labelOf returns a name as the value of a label, which is shorter than a name can be.
func labelOf(name string) string {
	if len(name) <= maxName {
		return name
	}
	return childName(name, 8, name)
}

// clean gives the sets what they have of the deployment, and deletes old ones that are empty beyond the history.
func (p *deploymentPass) clean() {
	d := &p.Deployment.Spec
	var empty []*group
	for _, g := range p.sets {
		if s := &g.set.Spec; s.Order != d.Order || s.MaxProvisioning != d.MaxProvisioning || s.MinReady != d.MinReady {
			g.change("it follows its deployment", func(s *Set) {
				s.Spec.Order, s.Spec.MaxProvisioning, s.Spec.MinReady = d.Order, d.MaxProvisioning, d.MinReady
			})
		}
		if g == p.current || g.total > 0 || p.frozen || !g.set.Deleted.IsZero() {
			continue
		}
		if g.set.Spec.Replicas != 0 {
			g.change("it is empty", func(s *Set) { s.Spec.Replicas = 0 })
		}
		if g.held {
			empty = append(empty, g)
		}
	}
	keep := max(0, cmp.Or(d.History, defaultHistory))
	for _, g := range empty[:max(0, len(empty)-keep)] {
		g.why = ""
		p.d.Delete = append(p.d.Delete, Choice{g.was.Key, g.was.UID, g.was.Version, "an old one without machines, beyond the history"})
	}
}

// collect lists what is to be written.
func (p *deploymentPass) collect() {
	for _, g := range p.sets {
		if g.why != "" {
			p.d.Update = append(p.d.Update, SetUpdate{g.set, g.why})
		}
	}
}
