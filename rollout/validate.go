// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// A FieldError says which field of a policy is wrong, what it is, and what would be right.
type FieldError struct {
	Field string
	Value any
	Want  string
}

// Error implements error.
func (e *FieldError) Error() string {
	if s, ok := e.Value.(string); ok {
		return fmt.Sprintf("%s is %q, want %s", e.Field, s, e.Want)
	}
	return fmt.Sprintf("%s is %v, want %s", e.Field, e.Value, e.Want)
}

func invalid(field string, value any, want string) error {
	return &FieldError{Field: field, Value: value, Want: want}
}

// Validate reports everything that is wrong with a policy by itself, each as a [FieldError]. That the nodes which it names are there is found
// out by [Plan], when the rollout begins; later on those that have gone are a [Finding].
func (p Policy) Validate() error {
	v := &validator{p: &p}
	v.text("uid", p.UID)
	v.revision("target", &p.Target)
	if p.Completed.Name != "" || p.Completed.Digest != "" {
		v.revision("completed", &p.Completed)
	}
	v.groups()
	v.listed()
	v.stages()
	v.finished()
	for i := range p.Caps {
		v.cap(fmt.Sprintf("caps[%d]", i), &p.Caps[i])
	}
	v.windows()
	v.settings()
	v.verb()
	v.checks()
	for i, d := range p.Detectors {
		v.check(d != nil, fmt.Sprintf("detectors[%d]", i), d, "a detector")
	}
	return errors.Join(v.errs...)
}

type validator struct {
	p    *Policy
	errs []error
}

func (v *validator) check(ok bool, field string, value any, want string) {
	if !ok {
		v.errs = append(v.errs, invalid(field, value, want))
	}
}

func (v *validator) text(field, value string) {
	v.check(value != "", field, value, "a text that is not empty")
}

func (v *validator) revision(field string, r *Revision) {
	v.text(field+".name", r.Name)
	v.text(field+".digest", r.Digest)
	v.class(field+".class", r.Class)
	v.check(r.MinAge >= 0, field+".minAge", r.MinAge, "0 or more")
}

func (v *validator) class(field string, c Class) {
	v.check(c == "" || c == Intrusive || c == NonIntrusive, field, string(c), fmt.Sprintf("%q or %q", Intrusive, NonIntrusive))
}

func (v *validator) groups() {
	v.check(len(v.p.Groups) > 0, "groups", len(v.p.Groups), "at least one group")
	v.check(len(v.p.Groups) <= 1<<groupBits, "groups", len(v.p.Groups), fmt.Sprintf("%d groups at most", 1<<groupBits))
	names := map[string]bool{}
	for i := range v.p.Groups {
		g, field := &v.p.Groups[i], fmt.Sprintf("groups[%d]", i)
		v.text(field+".name", g.Name)
		v.check(!names[g.Name], field+".name", g.Name, "a name that no other group has")
		names[g.Name] = true
		v.check(g.Selector == nil || len(g.Nodes) == 0, field, g.Name, "either a selector or nodes, it has both")
		v.check(g.Selector != nil || len(g.Nodes) > 0, field, g.Name, "either a selector or nodes, it has neither")
		if g.Target != nil {
			v.revision(field+".target", g.Target)
		}
		if g.Completed != nil {
			v.check(g.Target != nil, field+".completed", g.Completed.Name, "none without a target of the group's own")
			v.revision(field+".completed", g.Completed)
		}
	}
}

// listed looks for nodes that are named twice.
func (v *validator) listed() {
	all := listings(v.p.Groups)
	for i := range all {
		empty, again := all[i].name == "", i > 0 && all[i].name == all[i-1].name
		if !empty && !again {
			continue // thousands of them, at every pass
		}
		field := fmt.Sprintf("groups[%d].nodes", all[i].group)
		v.check(!empty, field, all[i].name, "names of nodes")
		v.check(empty || !again, field, all[i].name, "each node once in all groups")
	}
}

func (v *validator) stages() {
	v.check(len(v.p.Stages) <= 1<<stageBits, "stages", len(v.p.Stages), fmt.Sprintf("%d stages at most", 1<<stageBits))
	names := map[string]bool{}
	for i := range v.p.Stages {
		s, field := &v.p.Stages[i], fmt.Sprintf("stages[%d]", i)
		v.text(field+".name", s.Name)
		v.check(!names[s.Name], field+".name", s.Name, "a name that no other stage has")
		names[s.Name] = true
		for j, g := range s.Groups {
			at := fmt.Sprintf("%s.groups[%d]", field, j)
			v.check(v.isGroup(g), at, g, "the name of a group")
			v.check(!slices.Contains(s.Groups[:j], g), at, g, "each group once")
		}
		if s.Size != nil {
			v.amount(field+".size", *s.Size)
		}
		for j := range s.Caps {
			v.cap(fmt.Sprintf("%s.caps[%d]", field, j), &s.Caps[j])
		}
		for j, g := range s.Gates {
			at := fmt.Sprintf("%s.gates[%d]", field, j)
			v.text(at, g)
			v.check(!slices.Contains(s.Gates[:j], g), at, g, "each gate once")
		}
		v.check(s.Soak >= 0, field+".soak", s.Soak, "0 or more")
	}
}

func (v *validator) isGroup(name string) bool {
	return slices.ContainsFunc(v.p.Groups, func(g Group) bool { return g.Name == name })
}

// finished looks for groups of which no stage takes all nodes.
func (v *validator) finished() {
	if len(v.p.Stages) == 0 {
		return
	}
	for i, g := range v.p.Groups {
		whole := slices.ContainsFunc(v.p.Stages, func(s Stage) bool {
			return s.Size == nil && (len(s.Groups) == 0 || slices.Contains(s.Groups, g.Name))
		})
		v.check(whole, fmt.Sprintf("groups[%d]", i), g.Name, "a group that one of the stages takes without a size, so that all of its nodes have their turn")
	}
}

func (v *validator) cap(field string, c *Cap) {
	switch c.Scope {
	case Total:
		v.check(c.Key == "", field+".key", c.Key, "none, as the scope is Total")
	case ByGroup:
		v.check(c.Key == "" || v.isGroup(c.Key), field+".key", c.Key, "the name of a group, or none for each")
	case ByClass:
		v.class(field+".key", Class(c.Key))
	case ByZone:
	default:
		v.check(false, field+".scope", string(c.Scope), fmt.Sprintf("%q, %q, %q or %q", Total, ByGroup, ByZone, ByClass))
	}
	v.amount(field+".max", c.Max)
}

// amount checks a number of nodes, or a percentage of them.
func (v *validator) amount(field string, a intstr.IntOrString) {
	if a.Type == intstr.Int {
		v.check(a.IntVal >= 1, field, a.IntVal, "1 or more, or a percentage from 1% to 100%")
		return
	}
	digits, isPercent := strings.CutSuffix(a.StrVal, "%")
	n, err := strconv.Atoi(digits)
	v.check(isPercent && err == nil && n >= 1 && n <= 100, field, a.StrVal, "1 or more, or a percentage from 1% to 100%")
}

func (v *validator) windows() {
	for i := range v.p.Windows {
		w, field := &v.p.Windows[i], fmt.Sprintf("windows[%d]", i)
		for j, d := range w.Days {
			v.check(d >= time.Sunday && d <= time.Saturday, fmt.Sprintf("%s.days[%d]", field, j), int(d), "0 (Sunday) to 6 (Saturday)")
		}
		v.check(w.Open >= 0 && w.Open < day, field+".open", w.Open, "0 or more, below 24h")
		v.check(w.Close > 0 && w.Close <= day, field+".close", w.Close, "more than 0, up to 24h")
		v.check(w.Open != w.Close, field, w.Open, "a time of closing other than that of opening: it never opens")
	}
	if len(v.p.Windows) == 0 || v.p.Cycle <= 0 {
		return
	}
	longest := longestOpen(v.p.Windows)
	v.check(v.p.Cycle <= longest, "cycle", v.p.Cycle,
		fmt.Sprintf("up to %s, the longest time for which a window is open: no node would ever fit", longest))
}

// longestOpen is how long windows are open at most without a gap, in a week without changes of clocks.
func longestOpen(windows []Window) time.Duration {
	var longest time.Duration
	for _, w := range windows {
		for days := range 7 {
			week := time.Date(2023, 1, 1+days, 0, 0, 0, 0, time.UTC)
			s, ok := Window{Days: w.Days, Open: w.Open, Close: w.Close}.on(week, 0)
			if !ok {
				continue
			}
			until, _ := openUntil(windows, s.open)
			longest = max(longest, until.Sub(s.open), s.close.Sub(s.open))
		}
	}
	return longest
}

func (v *validator) settings() {
	p := v.p
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"cycle", p.Cycle}, {"retryAfter", p.RetryAfter}, {"commitWithin", p.CommitWithin}, {"drainWithin", p.DrainWithin},
		{"applyWithin", p.ApplyWithin}, {"verifyWithin", p.VerifyWithin},
	} {
		v.check(d.value >= 0, d.field, d.value, "0 or more")
	}
	v.check(p.Attempts >= 0, "attempts", p.Attempts, "0 or more")
	v.check(slices.Contains([]StuckDrain{"", holdDrain, UndoDrain, ForceDrain}, p.StuckDrain), "stuckDrain", string(p.StuckDrain),
		fmt.Sprintf("%q, %q or %q", holdDrain, UndoDrain, ForceDrain))
	if p.MaxBroken != nil {
		v.amount("maxBroken", *p.MaxBroken)
	}
	if p.Prefetch != nil {
		v.amount("prefetch", *p.Prefetch)
	}
}

func (v *validator) verb() {
	verb := v.p.Verb
	if verb == (Verb{}) {
		return
	}
	v.text("verb.request", verb.Request)
	known := slices.ContainsFunc(Verbs(), func(r VerbRule) bool { return r.Do == verb.Do })
	v.check(known, "verb.do", string(verb.Do), "one of the verbs")
	v.check((verb.Node != "") == (verb.Do == Acknowledge), "verb.node", verb.Node, "the name of a node for Acknowledge, none for the others")
}
