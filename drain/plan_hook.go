// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"time"
)

// foundSilence is how long a PodResponder may give no sign of life. It is longer than the 20 minutes of the Eviction
// API, after which the next responder of a pod has its turn.
const foundSilence = 25 * time.Minute

// addFound has the pod wait for the PodResponder that found it, unless a rule says what happens to the pod.
func (b *planBehavior) addFound(name string) {
	if name == "" || b.byRule || b.kind != "" && b.kind != BehaviorEvict {
		return
	}
	b.found, b.hooks, b.deadline = true, []string{name}, cmp.Or(b.deadline, foundSilence)
}

// asksHooks reports whether responders are asked before the pod is evicted.
func (b *planBehavior) asksHooks() bool {
	return b.invalid == "" && (b.kind == BehaviorHook || b.found)
}

// isKeptFrom reports whether the pod must not be shown to the responder that found it: the eviction that it asks for
// would lose what the policy protects. A step that is due would lose it all the same.
func isKeptFrom(n *nodePass, w *podWork) bool {
	if !w.behavior.found || n.ladder.due != nil {
		return false
	}
	reason, _ := n.obstacle(w)
	return reason != reasonNone
}

// ladderFor counts the steps for a pod that a PodResponder has found from the request on.
func ladderFor(n *nodePass, w *podWork) planLadder {
	since := n.view.Hooks[w.UID].Since
	if !w.behavior.found || n.ladder.forced || !since.After(n.view.Started) {
		return n.ladder
	}
	asked := NodeView{Started: since, PoweredOff: n.view.PoweredOff}
	ladder := ladderOf(&asked, n.p.Escalation, n.now)
	ladder.forced, ladder.forceAt = false, n.ladder.forceAt
	return ladder
}

// addHookNote says in the message of a pod why no responder is waited for any more.
func addHookNote(n *nodePass, w *podWork) {
	state, asked := n.view.Hooks[w.UID]
	if !asked || !w.behavior.found || w.Action == Skip || w.Action == Hook {
		return
	}
	var note string
	switch {
	case state.Progress == HookDeclined:
		note = fmt.Sprintf("responder %q has declined: %s", state.Responder, state.Message)
	case state.Progress != HookDone && !n.now.Before(state.LastBeat.Add(w.behavior.deadline)):
		note = fmt.Sprintf("responder %q gives no sign of life since %s", state.Responder, planTime(state.LastBeat))
	default:
		return
	}
	if w.Message != "" {
		note = w.Message + "; " + note
	}
	w.Message = note
}

// waitsForHook reports whether a responder is to be asked, or has been and is still good for an answer. They are asked in order; one
// that declines or falls silent makes way for the next, and after the last the pod is evicted like any other.
func (n *nodePass) waitsForHook(w *podWork) bool {
	if isKeptFrom(n, w) {
		return false
	}
	silence := w.behavior.deadline
	if silence <= 0 {
		silence = defaultHookSilence
	}
	turn := 0
	state, asked := n.view.Hooks[w.UID]
	if i := lastIndex(w.behavior.hooks, state.Responder); asked && i >= 0 {
		switch {
		case state.Progress == HookDone:
			w.hookDone = true
			return false
		case state.Progress == HookDeclined:
			turn = i + 1
		case !state.LastBeat.IsZero() && !n.now.Before(state.LastBeat.Add(silence)):
			turn = i + 1
		default:
			n.askedHook(w, state)
			w.HookSilence = silence
			if !state.LastBeat.IsZero() {
				n.wake(state.LastBeat.Add(silence))
			}
			return true
		}
	}
	if turn == len(w.behavior.hooks) {
		return false
	}
	w.fresh, w.Hook, w.HookSilence = true, w.behavior.hooks[turn], silence
	w.decide(Hook, reasonWaitingForHook, fmt.Sprintf("responder %q is to be asked, %d of %d", w.Hook, turn+1, len(w.behavior.hooks)))
	return true
}

func (n *nodePass) askedHook(w *podWork, state HookState) {
	w.Hook = state.Responder
	message := fmt.Sprintf("responder %q has been asked", state.Responder)
	if state.Progress == HookWorking {
		message = fmt.Sprintf("responder %q is at it", state.Responder)
	}
	if state.Message != "" {
		message += ": " + state.Message
	}
	w.decide(Hook, reasonWaitingForHook, message)
}

// lastIndex finds a responder from the end, so that one that is named twice is not asked for ever.
func lastIndex(names []string, name string) int {
	for i := len(names) - 1; i >= 0; i-- {
		if names[i] == name {
			return i
		}
	}
	return -1
}
