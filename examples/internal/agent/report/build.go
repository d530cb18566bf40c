// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// Live is what a running agent says of itself.
type Live struct {
	Node   string
	Agent  Agent
	Status configsync.Status
}

// Build makes the document of one moment. live is nil when no agent runs. Where e holds no verdict, what the next start
// would do is unknown. It is pure.
func Build(now time.Time, live *Live, e configsync.Explanation) Document {
	s, origin := e.State, string(e.Next.Origin)
	d := Document{
		Version:       s.Version,
		Time:          now.UTC(),
		ConfigOK:      condition(e.Next.Condition),
		Assigned:      Assigned{Config: config(s.Current.Ref, origin), Since: s.Current.At},
		LastKnownGood: Good{Config: config(s.LastKnownGood, origin), Promoted: s.PromotedAt},
		Previous:      config(s.Previous, origin),
		Rejected:      rejected(s.Bad),
		Wanted:        Wanted{Outcome: word(string(s.Desired.Kind), "Unknown"), Cause: s.Desired.Cause, Since: s.Desired.At},
		Next:          next(e.Next, origin),
		Trouble:       trouble(e),
	}
	d.Next.After = lastStart(s.Starts)
	if live != nil {
		d.addLive(live)
	}
	d.addDetail()
	return d
}

// addDetail gives the condition the evidence of the rejection that is its reason.
func (d *Document) addDetail() {
	if d.ConfigOK == nil {
		return
	}
	for _, r := range d.Rejected {
		if r.Reason == d.ConfigOK.Reason && r.UID != "" {
			d.ConfigOK.Detail = r.Evidence
			return
		}
	}
}

// restartWindow is how far back restarts are counted for people.
const restartWindow = 10 * time.Minute

// isSameRun reports whether two runs used the same config.
func isSameRun(a, b lkg.Used) bool { return a.UID == b.UID && a.Key == b.Key && a.Digest == b.Digest }

// lastStart shows the newest start.
func lastStart(starts []lkg.Start) *Start {
	if len(starts) == 0 {
		return nil
	}
	last := starts[len(starts)-1]
	out := &Start{At: last.At, Cause: string(last.Cause), Detail: last.Detail, Last: last.Last}
	for _, s := range starts {
		unexplained := (s.Cause == lkg.CauseCrash || s.Cause == lkg.CauseUnknown) && isSameRun(s.After, last.Used)
		if age := last.At.Sub(s.At); unexplained && age >= 0 && age <= restartWindow {
			out.Unexplained++
		}
	}
	return out
}

// addLive replaces what would be by what is.
func (d *Document) addLive(live *Live) {
	st := live.Status
	agent := live.Agent
	d.Node, d.Agent = live.Node, &agent
	if st.StartedAt.IsZero() {
		return // it has not chosen a config yet
	}
	d.ConfigOK = condition(st.Condition)
	d.InUse = &InUse{Config: config(st.Active, st.Local), Since: st.StartedAt, Why: why(st)}
	d.Trial = trial(st.Trial)
	if p := st.Pending; p != nil {
		d.Wanted.Pending = config(p.To, st.Local).name() + " waits: " + p.Why
	}
	if st.Error != "" {
		d.Trouble = append(d.Trouble, "last trouble: "+st.Error)
	}
	if st.Alarm != "" {
		d.Trouble = append(d.Trouble, "ALARM: "+st.Alarm)
	}
}

// why says in one sentence why the config in use is the one in use.
func why(st configsync.Status) string {
	switch {
	case !st.Active.Same(st.Assigned) && st.Active.Same(st.LastKnownGood):
		return "it is the last known good config; the assigned one is avoided"
	case !st.Active.Same(st.Assigned):
		return "it is what is left to fall back to: the assigned config and the last known good one are avoided"
	case st.Active.IsLocal():
		return "no other config is assigned"
	case st.Trial != nil:
		return "it is assigned, and on trial"
	default:
		return "it is assigned and known to be good"
	}
}

// condition is nil for the zero condition, which is none.
func condition(c lkg.Condition) *Condition {
	if c == (lkg.Condition{}) {
		return nil
	}
	return &Condition{Status: string(c.Status), Reason: c.Reason, Message: c.Message}
}

func config(r lkg.Ref, origin string) Config {
	if r.IsLocal() {
		return Config{Local: word(origin, "unknown")}
	}
	return Config{Namespace: r.Namespace, Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion, Key: r.Key,
		Digest: r.Digest}
}

func word(w, otherwise string) string {
	if w == "" {
		return otherwise
	}
	return w
}

// rejected turns the records round: the newest is what a reader came for.
func rejected(bad []lkg.BadEntry) []Rejected {
	var out []Rejected
	for i := len(bad) - 1; i >= 0; i-- {
		b := bad[i]
		out = append(out, Rejected{Config: config(b.Ref, ""), Since: b.Time, Class: string(b.Class()), Reason: b.Reason,
			Evidence: b.Evidence, Last: b.Last})
	}
	return out
}

func trial(t *configsync.TrialStatus) *Trial {
	if t == nil {
		return nil
	}
	return &Trial{
		Since: t.Since, Healthy: t.Healthy.Round(time.Second).String(), Needed: t.Needed.String(),
		Counted: t.Counted, Allowed: t.Allowed, NotCounted: t.Ignored, Failing: t.Failing,
	}
}

func next(v lkg.Verdict, origin string) Next {
	switch {
	case v.Refuse != nil:
		return Next{Refuse: v.Refuse.Error()}
	case v.Role == "":
		return Next{Unknown: "the init config is not given"}
	}
	n := Next{Config: config(v.Use, origin), Role: string(v.Role), OnTrial: v.OnTrial}
	for _, s := range v.Steps {
		n.PassedOver = append(n.PassedOver, PassedOver{Config: config(s.Ref, origin), Role: string(s.Role), Why: s.Why})
	}
	if v.NewlyRejected {
		n.Rejects = v.Rejected.Reason
	}
	return n
}

// trouble lists the records that could not be used, and an alarm of the next start.
func trouble(e configsync.Explanation) []string {
	var out []string
	for _, n := range e.State.Notices {
		out = append(out, "record "+n.Stream+" can't be used: "+n.Err.Error())
	}
	if e.Next.Alarm != "" {
		out = append(out, "ALARM at the next start: "+e.Next.Alarm)
	}
	return out
}
