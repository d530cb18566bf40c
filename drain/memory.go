// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/backoff"
)

const (
	firstFallback = 10 * time.Second // a drain that nothing wakes looks again after this, doubling
	lastFallback  = 2 * time.Minute
	retryMost     = 64 * time.Second // the longest delay after passes that failed
	sentFor       = time.Minute      // how long an accepted eviction may take to show in the cache before it counts as lost
)

// A memory is what a Drainer keeps of one holder's business with one node between passes. All of it may be lost: what has to survive is
// in the mark. It is used only by the one pass of that holder over that node, but for unsure and doubt, which sets read too.
type memory struct {
	uid         types.UID
	maintenance string
	told        toldPhases
	evicted     []PodRef
	forced      []PodRef
	since       map[types.UID]blockedSince
	sent        map[types.UID]sentPod // evictions that the server has accepted, or may have
	attempts    map[types.UID]attempt
	hooks       map[types.UID]hookMemory
	returns     returns
	volumes     map[string][]PodRef // who used a volume
	restarts    map[types.UID]int32 // at the beginning of the watch after the release
	unsure      atomic.Bool         // what the cache shows of the node may be older than a write of this holder
	doubt       atomic.Bool         // this process tried to cordon the node, and it is not known whether it carries the mark
	mine        *mark               // of this holder alone, as it was last seen on the node, while the cordon stands
	stray       bool                // the node has a cordon of ours without its mark
	cancel      []HookRequest       // to be taken back
	named       bool                // those that an earlier process may have asked are among them
	emptySince  time.Time
	watch       lateWatch
	recordons   rivalry   // over a cordon that another client took off
	entries     rivalry   // over the entry on the node; it stands when the maintenance changes
	renewed     time.Time // when the Lease was renewed last for the hold
	idle        idleRounds
}

// idleRounds is how often the fallback has passed without a change of the status.
type idleRounds struct {
	count   int
	at      time.Time // when the last one was counted
	summary string    // of the status
}

// toldPhases are the phases that this process has told of: by the last event, and to metrics. withdrawn: what was asked
// of PodResponders was taken back, as the drain is stopped. superseded: another run has taken the node since.
// refused: conditions may not be written.
type toldPhases struct {
	event, metrics                 Phase
	withdrawn, superseded, refused bool
}

// A sentPod is a pod whose eviction the server has accepted, or, where it did not answer, may have.
type sentPod struct {
	ref      PodRef
	at       time.Time
	accepted bool
}

type blockedSince struct {
	reason Reason
	at     time.Time
}

// An attempt is what the server said last of a pod that has not left, and until when that holds it back.
type attempt struct {
	answer Answer
	until  time.Time
	tries  int
	first  time.Time // when the server first refused, or had left some evictions without an answer
	last   time.Time // when the last one came
	sent   podState  // what was known when the request was sent

	shortened time.Time // when the server took a shorter grace period
}

func newMemory(r Request, uid types.UID) *memory {
	m := &memory{uid: uid, maintenance: r.Maintenance,
		since: map[types.UID]blockedSince{}, sent: map[types.UID]sentPod{}, attempts: map[types.UID]attempt{}, hooks: map[types.UID]hookMemory{},
		returns: newReturns(), volumes: map[string][]PodRef{}, restarts: map[types.UID]int32{}}
	m.unsure.Store(true) // what an earlier process wrote last may not be in the cache yet
	if l := r.Last; l != nil && l.Node == r.Node && l.Maintenance == r.Maintenance {
		m.told.event, m.evicted, m.forced = l.Phase, slices.Clone(l.Evicted), slices.Clone(l.Forced)
		for _, b := range l.Blockers {
			m.since[b.UID] = blockedSince{b.Reason, b.Since}
		}
	}
	return m
}

// look notes which pods are on the node, which may be open to them. It returns those that were asked to leave and are seen to do so.
func (m *memory) look(pods []*corev1.Pod, open bool) (leaving []PodRef) {
	m.returns.look(pods, open)
	if open {
		m.watch = lateWatch{}
	}
	here := make(map[types.UID]bool, len(pods))
	ending := map[types.UID]bool{}
	for _, p := range pods {
		here[p.UID], ending[p.UID] = true, p.DeletionTimestamp != nil
	}
	for uid := range m.since {
		if !here[uid] {
			delete(m.since, uid)
		}
	}
	for uid := range m.attempts {
		if !here[uid] {
			delete(m.attempts, uid)
		}
	}
	for uid, s := range m.sent {
		if !here[uid] || ending[uid] {
			leaving = append(leaving, s.ref)
			delete(m.sent, uid)
		}
	}
	return leaving
}

// users notes which pods have mounted which volume.
func (m *memory) users(s Snapshot) {
	for _, v := range s.Nodes {
		for _, pod := range v.Pods {
			ref := refOf(pod)
			for _, name := range claimsOf(pod) {
				claim := s.Claims[types.NamespacedName{Namespace: pod.Namespace, Name: name}]
				if claim != nil && !slices.Contains(m.volumes[claim.Spec.VolumeName], ref) {
					m.volumes[claim.Spec.VolumeName] = append(m.volumes[claim.Spec.VolumeName], ref)
				}
			}
		}
	}
}

// refOf names a pod.
func refOf(pod *corev1.Pod) PodRef {
	return PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

// answers are those that still hold a pod back.
func (m *memory) answers(now time.Time) map[types.UID]Answer {
	out := map[types.UID]Answer{}
	for uid, a := range m.attempts {
		if now.Before(a.until) {
			out[uid] = a.answer
		}
	}
	for uid, s := range m.sent {
		if s.accepted && now.Before(s.at.Add(sentFor)) {
			out[uid] = Answer{Verdict: verdictAccepted}
		}
	}
	return out
}

// nextTry is when the next answer stops to hold its pod back; zero for none.
func (m *memory) nextTry(now time.Time) (next time.Time) {
	for _, a := range m.attempts {
		if a.until.After(now) && (next.IsZero() || a.until.Before(next)) {
			next = a.until
		}
	}
	return next
}

// learn takes in the server's answer to an eviction, or a deletion, of a pod.
func (m *memory) learn(pod *corev1.Pod, ref PodRef, step Step, a Answer, sent, now time.Time) {
	switch a.Verdict {
	case verdictAccepted:
		m.sent[ref.UID] = sentPod{ref, now, true}
		delete(m.attempts, ref.UID)
		if !slices.Contains(m.evicted, ref) {
			m.evicted = append(m.evicted, ref)
		}
		if step != StepEvict && !slices.Contains(m.forced, ref) {
			m.forced = append(m.forced, ref)
		}
		m.returns.evicted(pod, sent)
	default: // also for a pod that is gone: a cache that has lost its watch would have it asked for in every pass
		if a.Verdict == verdictUnknown {
			m.sent[ref.UID] = sentPod{ref: ref, at: now}
			m.returns.evicted(pod, sent)
		}
		m.noteRefusal(ref.UID, a, now)
		last := m.attempts[ref.UID]
		last.until, last.tries = now.Add(max(a.RetryAfter, fallback(last.tries))), last.tries+1
		m.attempts[ref.UID] = last
	}
}

// noteRefusal takes in an answer that holds the pod no longer than the scheduler says.
func (m *memory) noteRefusal(uid types.UID, a Answer, now time.Time) {
	last := m.attempts[uid]
	last.answer, last.last, last.until = a, now, time.Time{}
	asked := a.Code != 0 || last.tries+1 >= unansweredTries
	if last.first.IsZero() && asked && a.Verdict != verdictOverloaded {
		last.first = now
	}
	m.attempts[uid] = last
}

// fallback is the time to wait after n tries in vain.
func fallback(n int) time.Duration {
	return backoff.After(n, firstFallback, lastFallback)
}

// A registry holds the memories of a Drainer, and the locks of its passes.
type registry struct {
	mu       sync.Mutex
	memories map[key]*memory
	locks    map[key]*passLock       // without a holder: that of the node
	asked    map[question]bool       // under way
	waiting  map[key]interest        // what each drain waits for; read by the watch
	written  map[string]*corev1.Node // as the server answered, until the cache is as far
	marks    map[string]decodedMark  // by node
	watchers map[int]func(node string)
	next     int
}

// A decodedMark is the mark that a text says.
type decodedMark struct {
	text string
	mark mark
	err  error
}

// An interest is what may wake a drain: changes of its node, and of these budgets, or of any.
type interest struct {
	budgets map[types.NamespacedName]bool
	any     bool
}

type passLock struct {
	held  chan struct{}
	users int
}
