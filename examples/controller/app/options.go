// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/internal/appoption"
	"github.com/belayproject/belay/examples/internal/controller/wire"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
)

// An Option adds a part to the command that NewCommand makes.
type Option func(*parts)

// parts are what the program adds to the controller.
type parts struct {
	wire     wire.Parts
	gates    map[string]bool
	log      *klog.Logger
	problems appoption.Problems
}

// context returns ctx with the program's own logger, if it has one.
func (p *parts) context(ctx context.Context) context.Context {
	if p.log == nil {
		return ctx
	}
	return klog.NewContext(ctx, *p.log)
}

// WithGate has g decide at each pass of each domain whether the fleet allows nodes to be begun: a change freeze, an incident, a signal from
// monitoring. Gates are asked in the order of the options. Nodes in flight go on.
func WithGate(name string, g controller.Gate) Option {
	return func(p *parts) {
		appoption.Named(&p.problems, "WithGate", name, g, p.gates, "change-freeze")
		p.gates = add(p.gates, name, true)
		p.wire.Gates = append(p.wire.Gates, namedGate{name, g})
	}
}

// A namedGate names itself where its verdict names no gate.
type namedGate struct {
	name string
	controller.Gate
}

// Verdict implements controller.Gate.
func (g namedGate) Verdict(ctx context.Context) rollout.Verdict {
	v := g.Gate.Verdict(ctx)
	v.From = cmp.Or(v.From, g.name)
	return v
}

// WithStageGate has g decide whether a stage of a Rollout that lists the name in its gates is complete: a smoke test, an approval.
func WithStageGate(name string, g controller.Gate) Option {
	return func(p *parts) {
		appoption.Named(&p.problems, "WithStageGate", name, g, p.wire.StageGates, "smoke-test")
		p.wire.StageGates = add(p.wire.StageGates, name, g)
	}
}

// WithProvider has --machine-provider=name make machines by pr, in this process, in place of a program of that name.
func WithProvider(name string, pr provider.Provider) Option {
	return func(p *parts) {
		appoption.Named(&p.problems, "WithProvider", name, pr, p.wire.Providers, "mycloud")
		p.wire.Providers = add(p.wire.Providers, name, pr)
	}
}

// WithResponder has r evacuate pods before they are evicted, where the pod or a rule of the drain policy names it.
func WithResponder(name string, r drain.Responder) Option {
	return func(p *parts) {
		appoption.Named(&p.problems, "WithResponder", name, r, p.wire.Responders, "migrate")
		p.wire.Responders = add(p.wire.Responders, name, r)
	}
}

// WithPoweredOff has a drain ask whether the machine of a node is proven to be off. Without it no node is ever taken out of service.
func WithPoweredOff(off func(ctx context.Context, node *corev1.Node) (bool, error)) Option {
	return func(p *parts) {
		p.problems.Given("WithPoweredOff", off)
		p.wire.PoweredOff = off
	}
}

// WithLogger has the controller log to l. The flags for the log are left out.
func WithLogger(l klog.Logger) Option {
	return func(p *parts) { p.log = &l }
}

// add returns m with one entry more.
func add[T any](m map[string]T, name string, part T) map[string]T {
	if m == nil {
		m = map[string]T{}
	}
	m[name] = part
	return m
}
