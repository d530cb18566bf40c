// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest

import (
	"context"
	"time"

	"github.com/belayproject/belay/lkg"
)

// A content is the identity of a config.
type content struct{ uid, key, digest string }

func of(r lkg.Ref) content { return content{r.UID, r.Key, r.Digest} }

// A ledger is the machine's own account of what happened, against which verdicts and records are checked. It knows
// nothing of how package lkg counts.
type ledger struct {
	// crashes are ends of trial runs that nothing explains, since the config was last assigned or forgotten.
	crashes  map[content]int
	trial    string                    // id of the assignment that the run belongs to
	pending  []content                 // such ends, before a start on record
	health   map[content]time.Duration // healthy time as the one in use
	rejected map[content]bool          // rejected, and acknowledged as such
	blessed  map[content]bool          // may be last known good by a person's word

	state lkg.State        // as last seen on disk
	seen  int              // the store's changes then
	fell  map[content]bool // did not live, and nothing was healthy since
}

func newLedger() ledger {
	return ledger{
		crashes: map[content]int{}, health: map[content]time.Duration{},
		rejected: map[content]bool{}, blessed: map[content]bool{}, fell: map[content]bool{},
	}
}

// decided checks a verdict. acked: what it had to write is on record.
func (l *ledger) decided(m *Machine, v lkg.Verdict, acked bool) {
	m.t.Helper()
	l.durable(m, "Decide")
	baseline := m.o.Check(lkg.Ref{}).Outcome == lkg.CheckOK
	if (v.Refuse == nil) != baseline {
		m.t.Errorf("refused: %v, baseline ok: %v (rule: refuse if and only if the local baseline is not good, R-CS-52/53)",
			v.Refuse != nil, baseline)
	}
	if v.Condition == (lkg.Condition{}) || v.Condition.Reason == "" || v.Condition.Message == "" {
		m.t.Errorf("condition %+v (rule: a verdict always carries a cause)", v.Condition)
	}
	if v.Refuse != nil {
		return
	}
	l.usable(m, v)
	if v.Rejected != nil {
		if v.Condition.Reason != v.Rejected.Reason {
			m.t.Errorf("reason %q, bad entry says %q (rule: they are equal, R-CS-59)", v.Condition.Reason, v.Rejected.Reason)
		}
		if acked {
			l.rejected[of(v.Rejected.Ref)] = true
		}
	}
	l.walk(m, v, acked)
	l.count(m, v)
	l.trial = l.state.Current.ID
}

// usable checks that the config in use may be used.
func (l *ledger) usable(m *Machine, v lkg.Verdict) {
	m.t.Helper()
	if c := m.o.Check(v.Use); c.Outcome != lkg.CheckOK {
		m.t.Errorf("uses %+v, whose check says %v (rule: what is used passed its checks)", v.Use, c.Outcome)
	}
	if l.rejected[of(v.Use)] {
		m.t.Errorf("uses %+v, which was rejected (rule: a rejected config is not used until it is forgotten, R-CS-19)", v.Use)
	}
	if v.Use.IsLocal() || v.Use.Same(l.state.LastKnownGood) || v.Use.Same(l.state.Previous) {
		return
	}
	if !v.Use.Same(l.state.Current.Ref) || v.Role != lkg.RoleCurrent || !v.OnTrial {
		m.t.Errorf("uses %+v as %q, on trial: %v (rule: only the current config may be used without being known as good)",
			v.Use, v.Role, v.OnTrial)
	}
	if !m.onRecord() {
		m.t.Errorf("tries %+v, and the start is not on record (rule: a try is counted before it is made)", v.Use)
	}
}

// onRecord reports whether the present start, as the tracker has it, is on the disk.
func (m *Machine) onRecord() bool {
	mem, disk := m.Tracker().State().Starts, m.ledger.state.Starts
	return len(mem) > 0 && len(disk) > 0 && disk[len(disk)-1].At.Equal(mem[len(mem)-1].At)
}

// walk checks that what did not live is not used again before something was healthy, or nothing lives.
func (l *ledger) walk(m *Machine, v lkg.Verdict, acked bool) {
	m.t.Helper()
	c := v.Case
	if c != nil && c.Phase == "common" {
		clear(l.fell)
	}
	if l.fell[of(v.Use)] {
		m.t.Errorf("uses %+v again, whose runs ended badly (rule: what did not live is used again only after something "+
			"was healthy, or where nothing lives)", v.Use)
	}
	if !acked || c == nil || c.Phase == "common" {
		return
	}
	for _, f := range c.Below {
		l.fell[content{f.Used.UID, f.Used.Key, f.Used.Digest}] = true
	}
	if s := c.Suspect; c.Phase == "compare" {
		l.fell[content{s.UID, s.Key, s.Digest}] = true
	}
}

// durable reads the disk and checks what changed on it.
func (l *ledger) durable(m *Machine, op string) {
	m.t.Helper()
	if l.seen == m.Store.changes {
		return
	}
	l.seen = m.Store.changes
	s, err := lkg.Load(context.WithoutCancel(m.t.Context()), m.Store, m.Version)
	if err != nil {
		m.t.Fatalf("after %s: reading the disk: %v", op, err)
	}
	old := l.state
	l.state = s
	l.followRecord(&old, op)
	l.checkCurrent(m, &old, op)
	l.checkLastKnownGood(m, &old, op)
}

// followRecord takes over what the change of the record on the disk means for the account.
func (l *ledger) followRecord(old *lkg.State, op string) {
	s := &l.state
	if old.Current.ID != s.Current.ID {
		l.crashes[of(s.Current.Ref)], l.pending = 0, nil // a new trial
		clear(l.fell)
	}
	if old.GoodID != s.GoodID {
		clear(l.fell)
	}
	if old.Case != nil && s.Case == nil && op != "Decide" && s.BadEntry(s.Current.Ref) == nil {
		l.crashes[of(s.Current.Ref)] = 0 // found not to blame, by a healthy run
	}
}

// checkCurrent checks how the current config changed on the disk.
func (l *ledger) checkCurrent(m *Machine, old *lkg.State, op string) {
	m.t.Helper()
	s := &l.state
	if op == "Decide" && !old.Current.Ref.Same(s.Current.Ref) {
		m.t.Errorf("Decide changed current from %+v to %+v (rule: rolling back leaves current alone, R-CS-56)",
			old.Current.Ref, s.Current.Ref)
	}
	if s.Current.Ref.IsLocal() && !s.CurrentLost && !s.LastKnownGood.IsLocal() {
		m.t.Errorf("after %s: current is local and last known good is %+v (rule: reset last known good first, R-CS-55)",
			op, s.LastKnownGood)
	}
}

// checkLastKnownGood checks that a config which the disk now has as the last known good one may be it.
func (l *ledger) checkLastKnownGood(m *Machine, old *lkg.State, op string) {
	m.t.Helper()
	good := l.state.LastKnownGood
	if good.Same(old.LastKnownGood) || good.IsLocal() {
		return
	}
	if trial := m.trial(good); l.health[of(good)] <= trial && !l.blessed[of(good)] {
		m.t.Errorf("after %s: %+v is last known good after %v of health (rule: more than %v, R-CS-46)",
			op, good, l.health[of(good)], trial)
	}
}

// trial is how long a config must be healthy.
func (m *Machine) trial(r lkg.Ref) time.Duration { return lkg.Bounds{}.Clamp(m.o.Limits(r)).Trial }

// crashed notes the end of a run that nothing explains. It counts from the next start that gets on record.
func (l *ledger) crashed(m *Machine) {
	if m.up && m.v.OnTrial && l.trial == l.state.Current.ID && !l.announced() {
		l.pending = append(l.pending, of(m.v.Use))
	}
}

// excused forgets an end that was not on record before the machine went down, or before a restart was planned: nobody
// can tell it from what came after it.
func (l *ledger) excused() { l.pending = nil }

// count checks how often a config on trial has crashed.
func (l *ledger) count(m *Machine, v lkg.Verdict) {
	m.t.Helper()
	if !m.onRecord() {
		return
	}
	for _, k := range l.pending {
		l.crashes[k]++
	}
	l.pending = nil
	most := m.o.Limits(l.state.Current.Ref).CrashLoopThreshold
	if c, cur := v.Case, l.state.Current.Ref; c != nil && c.Suspect.UID == cur.UID && !v.Use.Same(cur) {
		l.crashes[of(cur)] = 0 // it was left
	}
	if n := l.crashes[of(v.Use)]; v.OnTrial && n > most {
		m.t.Errorf("%+v is tried again after %d crashes (rule: more than %d leave it, R-CS-64)", v.Use, n, most)
	}
}

// lost is what a damaged record leaves of the account: health, and what a person allowed.
func (l *ledger) lost() {
	clear(l.crashes)
	clear(l.rejected)
	clear(l.fell)
	l.pending = nil
}

// announced reports whether a restart is on record that has not happened yet: it excuses one end.
func (l *ledger) announced() bool {
	return l.state.Marker != nil && l.state.Marker.ID != l.state.Consumed
}

func (l *ledger) healthy(m *Machine, d time.Duration) {
	clear(l.fell)
	l.health[of(m.v.Use)] += d
}

func (l *ledger) judged(p lkg.Progress, acked bool) {
	if p.Result == lkg.ResultRejected && acked {
		l.rejected[of(p.Rejected.Ref)] = true
	}
}

func (l *ledger) forgotten(r lkg.Ref) {
	for k := range l.rejected {
		if k.uid == r.UID {
			delete(l.rejected, k)
		}
	}
	delete(l.crashes, of(r))
}

func (l *ledger) bless(r lkg.Ref) { l.blessed[of(r)] = true }
