// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/raceshare"
)

// FuzzTracker drives a tracker through what a watch can do to it, and checks what a view promises after each step: nobody is lost while the
// view is not up to date, or who was seen within Liveness, or who still holds, seen or not, amid a list or not (I6), Joined and Left alternate
// for each holder (I5) and an edit is no sign of life, the counts and the order of the rolls hold, and the next change that is announced is
// not a past one. R-ID-10, R-ID-12.
func FuzzTracker(f *testing.F) {
	for seed := range raceshare.Of(f, uint64(400)) {
		random := rand.New(rand.NewPCG(seed, 2))
		steps := make([]byte, 400)
		for i := range steps {
			steps[i] = byte(random.Uint32())
			if seed%2 == 0 && i%2 == 0 && steps[i]%steppings == leap { // half of the worlds have no long pauses
				steps[i]--
			}
		}
		f.Add(steps)
	}
	// A holder renews while the watch hangs, and Liveness after its last renewal that was seen the view still takes itself to be up to date.
	f.Add([]byte{0, 0, 7, 0, 3, 100, 7, 0, 3, 102, 7, 0, 13, 0, 3, 199})
	// The same with a list in the end, of a later write of the canary and the renewal, in any order.
	for range 10 {
		f.Add([]byte{7, 0, 0, 0, 7, 0, 3, 120, 7, 0, 3, 110, 7, 0, 3, 10, 13, 0, 3, 165, 17, 0, 3, 5, 11, 0})
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		m := newModel(t)
		for len(steps) >= 2 {
			m.step(steps[0], steps[1])
			steps = steps[2:]
			m.check()
		}
	})
}

// model is a server, the watch of it, and a tracker.
type model struct {
	t       *testing.T
	tracker *tracker
	now     time.Duration
	version int
	stored  map[string]*coordinationv1.Lease
	pending []seen // what the watch has not brought yet
	shown   map[string]*coordinationv1.Lease
	sent    map[string]time.Duration // by version of the canary
	wrote   map[string][]writing
	told    map[string]string // holder that has joined and not left, by name
	proof   writing           // of the canary, the newest that was seen
	settled writing           // the one before, or the same if no list can be under way any more
	holds   map[string]hold   // by name
	losses  []time.Duration
}

// hold is what a member does that goes on for modelHold after each of its writes, and is another incarnation after that.
type hold struct {
	incarnation int
	last        time.Duration
}

const modelHold = 36 * time.Second

type writing struct {
	at      time.Duration
	version int
}

type seen struct {
	name  string
	lease *coordinationv1.Lease // nil: deleted
}

func newModel(t *testing.T) *model {
	c := ViewConfig{Liveness: 40 * time.Second, MassLoss: 0.5}.complete()
	return &model{
		t: t, tracker: newTracker(&c), stored: map[string]*coordinationv1.Lease{}, shown: map[string]*coordinationv1.Lease{},
		sent: map[string]time.Duration{}, wrote: map[string][]writing{}, told: map[string]string{}, holds: map[string]hold{},
	}
}

// steppings is how many kinds of steps there are, and leap is the one that lets the most time go by.
const (
	steppings = 18
	leap      = 6
)

func (m *model) step(what, how byte) {
	name := fmt.Sprint("p", how%5)
	switch what % steppings {
	case 0:
		m.write(name, fmt.Sprint("h", how%3))
	case 1:
		delete(m.stored, name)
		m.pending = append(m.pending, seen{name: name})
	case 2:
		m.write(name, "")
	case 3, 4, 5:
		m.now += time.Duration(how) * 100 * time.Millisecond
	case leap:
		m.now += time.Duration(how) * 10 * time.Second
	case 7, 8, 9:
		m.write(own, own)
		m.bring(len(m.pending))
	case 10:
		m.bring(int(how) % (len(m.pending) + 1))
	case 11:
		m.relist()
	case 12:
		m.edit(name)
	case 13, 14, 15:
		m.renew(name)
	case 16:
		for i := range 5 {
			m.renew(fmt.Sprint("p", i))
		}
	case 17: // as a canary whose watch hangs
		m.write(own, own)
	}
	m.apply(m.tracker.evaluate(m.now), true)
}

const own = "me"

// write stores a version.
func (m *model) write(name, holder string) {
	m.version++
	uid := types.UID(fmt.Sprint("u", m.version))
	if old := m.stored[name]; old != nil {
		uid = old.UID
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: uid, ResourceVersion: strconv.Itoa(m.version)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: time.UnixMicro(int64(m.version))}},
	}
	if name == own {
		m.sent[lease.ResourceVersion] = m.now
	}
	h := m.holds[name]
	if old := m.stored[name]; old == nil || holderOf(old) != holder || m.now-h.last >= modelHold {
		h.incarnation = m.version
	}
	h.last = m.now
	m.holds[name] = h
	lease.Annotations = map[string]string{"incarnation": strconv.Itoa(h.incarnation)}
	m.store(name, lease)
}

// renew writes as the holder that there is.
func (m *model) renew(name string) {
	if old := m.stored[name]; old != nil {
		m.write(name, holderOf(old))
	}
}

// edit stores a version that says nothing of the holder.
func (m *model) edit(name string) {
	if old := m.stored[name]; old != nil {
		m.version++
		lease := old.DeepCopy()
		lease.ResourceVersion = strconv.Itoa(m.version)
		m.store(name, lease)
	}
}

func (m *model) store(name string, lease *coordinationv1.Lease) {
	m.stored[name] = lease
	m.wrote[name] = append(m.wrote[name], writing{m.now, m.version})
	m.pending = append(m.pending, seen{name, lease})
}

func numberOf(lease *coordinationv1.Lease) int {
	n, _ := strconv.Atoi(lease.ResourceVersion)
	return n
}

// bring has the watch bring the first n of what is pending.
func (m *model) bring(n int) {
	for _, s := range m.pending[:n] {
		m.show(s)
		if s.name != own { // it was written after the list
			m.tracker.clock.settle()
			m.settled = m.proof
		}
	}
	m.pending = m.pending[n:]
}

// relist brings the state and forgets what was in between. The map gives any order. The view may look amid it.
func (m *model) relist() {
	m.pending = nil
	for name := range m.shown {
		if m.stored[name] == nil {
			m.show(seen{name: name})
		}
	}
	for name, lease := range m.stored {
		m.show(seen{name, lease})
		m.apply(m.tracker.evaluate(m.now), true)
	}
}

func (m *model) show(s seen) {
	key := types.NamespacedName{Namespace: "n", Name: s.name}
	if s.lease == nil {
		delete(m.shown, s.name)
		m.apply(m.tracker.forget(m.now, key), false)
		return
	}
	old := m.shown[s.name]
	m.shown[s.name] = s.lease
	changes := m.tracker.observe(m.now, s.lease, m.version%7 == 0)
	if old != nil && old.UID == s.lease.UID && old.Spec.RenewTime.Equal(s.lease.Spec.RenewTime) && slices.ContainsFunc(changes, func(c change) bool { return c.what == Joined }) {
		m.t.Fatalf("%s has joined by an edit", s.name)
	}
	m.apply(changes, false)
	if sent, ok := m.sent[s.lease.ResourceVersion]; ok {
		m.tracker.prove(m.now, sent)
		if m.proof.version < numberOf(s.lease) {
			m.settled, m.proof = m.proof, writing{sent, numberOf(s.lease)}
		}
		for i, at := range m.losses { // time may have been taken back
			m.losses[i] = min(at, m.tracker.clock.read(m.now))
		}
	}
}

// apply checks each change. due is set for those that time has made.
func (m *model) apply(changes []change, due bool) {
	for _, c := range changes {
		name, holder := c.peer.lease.Name, holderOf(c.peer.lease)
		joined, ok := m.told[name]
		switch {
		case c.what == Joined && ok:
			m.t.Fatalf("I5: %s joined as %q, and has not left as %q", name, holder, joined)
		case c.what != Joined && (!ok || holder != joined):
			m.t.Fatalf("I5: %s %s as %q, want %q", c.what, name, holder, joined)
		case c.what == Joined:
			m.told[name] = holder
		case c.what == Left:
			delete(m.told, name)
		}
		if c.what == Left && (c.reason == LeftQuiet) != due {
			m.t.Fatalf("%s left for %q, by time: %t", name, c.reason, due)
		}
		if c.reason == LeftQuiet {
			m.lost(name, c.peer.quiet)
			h := m.holds[name]
			if c.peer.lease.Annotations["incarnation"] == strconv.Itoa(h.incarnation) && m.stored[name] != nil && m.now-h.last < modelHold {
				m.t.Fatalf("I6: %s is lost at %v, though it wrote at %v and still holds", name, m.now, h.last)
			}
		}
	}
}

// lost checks that a loss was right.
func (m *model) lost(name string, quiet time.Duration) {
	switch fresh := m.tracker.clock.fresh(m.now); {
	case !fresh, m.now-m.proof.at >= m.tracker.clock.freshFor:
		m.t.Fatalf("I6: %s is lost at %v, though the last proof is of %v", name, m.now, m.proof.at)
	case quiet < m.tracker.liveness:
		m.t.Fatalf("%s is lost after %v", name, quiet)
	}
	for _, w := range m.wrote[name] {
		if w.version < m.settled.version && m.now-w.at < m.tracker.liveness {
			m.t.Fatalf("R-ID-10: %s is lost at %v, though it wrote at %v, which was seen: the last proof is of %v", name, m.now, w.at, m.settled.at)
		}
	}
	at := m.tracker.clock.read(m.now)
	m.losses = append(slices.DeleteFunc(m.losses, func(l time.Duration) bool { return l+m.tracker.liveness <= at }), at)
	if n := len(m.losses); n > 1 && quiet < m.tracker.liveness+m.tracker.massLossHold && 2*n > len(m.told)+n {
		m.t.Fatalf("%d are lost within one Liveness, %d are left: want at most half lost", n, len(m.told))
	}
}

// check looks at the tracker's books.
func (m *model) check() {
	t := m.tracker
	n := 0
	for _, l := range []*roll{&t.unconfirmed, &t.alive, &t.suspect, &t.held, &t.lost} {
		n += l.n
		at := time.Duration(-1)
		for r := l.first; r != nil; r = r.next {
			if r.roll != l || t.clock.fresh(m.now) && l != &t.lost && r.changed < at {
				m.t.Fatalf("the roll of %s is out of order", l.state)
			}
			at = r.changed
			if _, joined := m.told[r.lease.Name]; joined != l.joined {
				m.t.Fatalf("%s is %s, and joined: %t", r.lease.Name, l.state, joined)
			}
		}
	}
	if n != len(t.records) || n != len(m.shown) {
		m.t.Fatalf("%d are on rolls, %d are known, %d are shown", n, len(t.records), len(m.shown))
	}
	if next, ok := t.next(m.now); ok && next <= m.now {
		m.t.Fatalf("at %v the next change is at %v", m.now, next)
	}
}
