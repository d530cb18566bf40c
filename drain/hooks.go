// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const hookEvery = 10 * time.Second // how often a responder is asked how it goes

// A hookMemory is what is known of a pod's responders, and how to take the request back.
type hookMemory struct {
	state   HookState
	beat    string
	request HookRequest
	asked   time.Time
}

func (m *memory) hookStates() map[types.UID]HookState {
	out := make(map[types.UID]HookState, len(m.hooks))
	for uid, h := range m.hooks {
		out[uid] = h.state
	}
	return out
}

// askHooks asks the responders that the plan names, those that are due. It reports whether anything was said.
func (p *pass) askHooks(ctx context.Context) bool {
	said := false
	for i := range p.plan.Pods {
		pod := &p.plan.Pods[i]
		if pod.Action != Hook || ctx.Err() != nil {
			continue
		}
		p.ask(hookEvery)
		h := p.memory.hooks[pod.UID]
		if h.request.Responder == pod.Hook && p.now.Before(h.asked.Add(hookEvery)) {
			continue
		}
		p.memory.hooks[pod.UID] = p.askHook(ctx, pod, h)
		said = true
	}
	return said
}

// askHook asks one responder. A responder that fails gives no sign of life, and is given up like one that is silent.
func (p *pass) askHook(ctx context.Context, pod *PodPlan, h hookMemory) hookMemory {
	if h.request.Responder != pod.Hook {
		h = hookMemory{state: HookState{Responder: pod.Hook, Progress: HookAsked, LastBeat: p.now}}
	}
	h.request = HookRequest{Pod: pod.PodRef, Node: p.node.Name, Holder: p.r.Holder, Maintenance: p.r.Maintenance, Responder: pod.Hook}
	h.asked = p.now
	responder := p.d.o.Responders[pod.Hook]
	if responder == nil {
		h.state.Progress, h.state.Message = HookDeclined, fmt.Sprintf("there is no responder %q", pod.Hook)
		return h
	}
	ctx, cancel := context.WithTimeout(ctx, hookEvery)
	defer cancel()
	answer, err := responder.Respond(ctx, h.request)
	if err != nil {
		h.state.Message = fmt.Sprintf("asking responder %q: %v", pod.Hook, err)
		return h
	}
	if answer.Beat != h.beat || answer.Progress != h.state.Progress {
		h.state.LastBeat, h.beat = p.now, answer.Beat
	}
	h.state.Progress, h.state.Message = answer.Progress, answer.Message
	return h
}

// cancelHooks takes back what was asked of responders. Those that cannot be reached are reported and asked again by the next pass.
func (p *pass) cancelHooks(ctx context.Context) error {
	var errs []error
	for uid, h := range p.memory.hooks {
		responder := p.d.o.Responders[h.request.Responder]
		if responder == nil {
			delete(p.memory.hooks, uid)
			continue
		}
		if err := cancelHook(ctx, responder, h.request); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(p.memory.hooks, uid)
	}
	return errors.Join(errs...)
}

func cancelHook(ctx context.Context, responder Responder, r HookRequest) error {
	ctx, cancel := context.WithTimeout(ctx, hookEvery)
	defer cancel()
	if err := responder.Cancel(ctx, r); err != nil {
		return fmt.Errorf("taking back the request to responder %q about pod %s: %w", r.Responder, r.Pod, err)
	}
	return nil
}
