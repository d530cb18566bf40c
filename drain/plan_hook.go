// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import "fmt"

// waitsForHook reports whether a responder is to be asked, or has been and is still good for an answer. They are asked in order; one
// that declines or falls silent makes way for the next, and after the last the pod is evicted like any other.
func (n *nodePass) waitsForHook(w *podWork) bool {
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
