// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/eventnote"
)

// blockers turns the plan into the status: counts, and every pod that has not left.
func (p *pass) blockers() {
	p.st.Counts = Counts{Evicted: len(p.memory.evicted)}
	count := &p.st.Counts
	for i := range p.plan.Pods {
		pod := &p.plan.Pods[i]
		if pod.Action == Skip {
			count.addSkipped(pod.Reason)
			continue
		}
		count.Remaining++
		switch {
		case pod.Action == Evict:
			count.Evictable++
		case pod.Reason == Terminating:
			count.Terminating++
		case pod.Action == Block:
			count.Blocked++
		default:
			count.Waiting++
		}
		p.st.Blockers = append(p.st.Blockers, p.blocker(pod))
	}
	slices.SortStableFunc(p.st.Blockers, func(a, b Blocker) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	p.outcome()
}

// outcome is Blocked when everything that is left needs somebody to act, with no step of the ladder to come.
func (p *pass) outcome() {
	if p.st.Outcome != "" || p.st.Counts.Remaining == 0 {
		return
	}
	stuck := func(b Blocker) bool { return b.Action == Block && b.NextAt.IsZero() }
	if i := slices.IndexFunc(p.st.Blockers, stuck); i >= 0 {
		rest := slices.IndexFunc(p.st.Blockers, func(b Blocker) bool { return !stuck(b) && b.Reason != WaitingForOrder })
		if rest < 0 {
			p.st.Outcome = OutcomeBlocked
		}
		if p.st.Reason == "" {
			p.st.Reason, p.st.Message = p.st.Blockers[i].Reason, p.st.Blockers[i].Message
		}
	}
	if p.st.Message == "" {
		p.st.Message = p.st.summary()
	}
}

// blocker is what the status says of one pod.
func (p *pass) blocker(pod *PodPlan) Blocker {
	return Blocker{PodRef: pod.PodRef, Action: pod.Action, Reason: pod.Reason, Message: pod.Message, Budgets: pod.Budgets, Hook: pod.Hook,
		Since: p.since(pod.UID, pod.Reason), Next: pod.Next, NextAt: pod.NextAt}
}

// since is when this reason was first seen.
func (p *pass) since(pod types.UID, reason Reason) time.Time {
	s, known := p.memory.since[pod]
	if !known || s.reason != reason {
		s = blockedSince{reason, p.now}
		p.memory.since[pod] = s
	}
	return s.at
}

// interests tells the watch which budgets this drain waits for.
func (p *pass) interests() {
	p.budgets = map[types.NamespacedName]bool{}
	for i := range p.plan.Pods {
		if pod := &p.plan.Pods[i]; pod.Action != Skip {
			for _, b := range pod.Budgets {
				p.budgets[types.NamespacedName{Namespace: pod.Namespace, Name: b}] = true
			}
		}
	}
}

// summary says in one bounded line what the pods are about: the reasons with their numbers, and up to three pods of each.
func (s Status) summary() string {
	byReason := map[Reason][]string{}
	for _, b := range s.Blockers {
		byReason[b.Reason] = append(byReason[b.Reason], b.PodRef.String())
	}
	if len(byReason) == 0 {
		return ""
	}
	parts := make([]string, 0, len(byReason))
	for _, r := range slices.Sorted(maps.Keys(byReason)) {
		pods := byReason[r]
		slices.Sort(pods)
		name := cmp.Or(string(r), "Leaving")
		more := ""
		if len(pods) > 3 {
			more = fmt.Sprintf(" and %d more", len(pods)-3)
		}
		parts = append(parts, fmt.Sprintf("%s: %s%s", name, strings.Join(pods[:min(3, len(pods))], ", "), more))
	}
	return strings.Join(parts, "; ")
}

// report tells metrics and events what this pass came to.
func (p *pass) report(took time.Duration) {
	m := p.d.o.Metrics
	nothing := p.memory.told.event == "" && p.st.Phase == Released && p.st.Started.IsZero() // there was nothing to release
	if !nothing {
		p.count(p.st.Phase)
		if p.dropped {
			p.count("")
		}
	}
	if p.st.Phase != p.memory.told.event && !nothing {
		if !p.contested() {
			p.event(eventType(p.st), string(p.st.Phase), cmp.Or(p.st.Message, "for "+p.r.Holder))
		}
		p.memory.told.event = p.st.Phase
	}
	if m.Blocked != nil {
		m.Blocked(p.r.Node, blockedByReason(p.st), oldest(p.st))
	}
	if m.Pass != nil {
		m.Pass(took)
	}
}

// count tells metrics that the node is in another phase, as far as this process has told before.
func (p *pass) count(phase Phase) {
	if f := p.d.o.Metrics.Phase; f != nil && phase != p.memory.told.metrics {
		f(p.memory.told.metrics, phase)
	}
	p.memory.told.metrics = phase
}

func eventType(s Status) string {
	if s.Phase == Failed || s.Phase == Paused || s.Outcome == OutcomeBlocked || s.Reason == Frozen {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

func blockedByReason(s Status) map[Reason]int {
	out := map[Reason]int{}
	for _, b := range s.Blockers {
		if b.Action == Block || b.Action == Wait {
			out[b.Reason]++
		}
	}
	return out
}

// oldest is since when the pod that is blocked longest is blocked.
func oldest(s Status) time.Time {
	for _, b := range s.Blockers {
		if b.Action == Block || b.Action == Wait && b.Reason != Terminating {
			return b.Since
		}
	}
	return time.Time{}
}

// event tells the recorder about an edge on the node.
func (p *pass) event(kind, reason, note string) {
	if p.d.o.Recorder != nil && p.node != nil {
		p.d.o.Recorder.Eventf(p.node, nil, kind, reason, string(p.r.Mode), "%s", eventnote.ClipNote(note))
	}
}

// jitter spreads d by a tenth, so that drains that began together do not look together for ever.
func jitter(d time.Duration) time.Duration {
	return backoff.Jitter(d, 0.95, 1.05, nil)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
