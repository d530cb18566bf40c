// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/internal/appoption"
)

// An Option adds a part to the command that NewCommand makes.
type Option func(*parts)

// parts are what the program adds to drain.
type parts struct {
	rules      []drain.Rule
	responders map[string]drain.Responder
	problems   appoption.Problems
}

// WithRule has a rule decide about the pods that it matches, in every drain and plan. Rules are asked in the order of the options, before those of
// --policy.
func WithRule(r drain.Rule) Option {
	return func(p *parts) {
		if r.Name == "" {
			p.problems.Wrong("WithRule", "Rule.Name is required (it is shown as the reason of a decision)")
		}
		if err := (drain.Policy{Rules: []drain.Rule{r}}).Validate(); err != nil {
			p.problems.Wrong("WithRule", "rule %q: %v", r.Name, err)
		}
		p.rules = append(p.rules, r)
	}
}

// WithResponder has r evacuate pods before they are evicted, where the pod or a rule names it. drain release takes back what was asked of it.
func WithResponder(name string, r drain.Responder) Option {
	return func(p *parts) {
		appoption.Named(&p.problems, "WithResponder", name, r, p.responders, "migrate")
		if p.responders == nil {
			p.responders = map[string]drain.Responder{}
		}
		p.responders[name] = r
	}
}
