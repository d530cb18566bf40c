// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/belayproject/belay/machine/provider"
)

// stub can do everything, and does what it is told.
type stub struct {
	// do is called for each call; nil is success.
	do func(ctx context.Context, method, token string) error
	// listed is what List has found.
	listed func() []provider.Instance

	mu    sync.Mutex
	calls []string
}

func (s *stub) call(ctx context.Context, method string, about ...any) error {
	token := strings.TrimSpace(fmt.Sprintln(about...))
	s.mu.Lock()
	s.calls = append(s.calls, method+" "+token)
	s.mu.Unlock()
	if s.do == nil {
		return nil
	}
	return s.do(ctx, method, token)
}

// took returns the calls since it was last asked.
func (s *stub) took() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// count returns how many calls of a method there were since took.
func (s *stub) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(s.calls), func(c string) bool { return !strings.HasPrefix(c, method+" ") }))
}

func (s *stub) Create(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
	return provider.Instance{Token: r.Token}, s.call(ctx, "Create", r.Token)
}

func (s *stub) Get(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
	return provider.Instance{Token: ref.Token, Message: "got"}, s.call(ctx, "Get", ref.Token)
}

func (s *stub) List(ctx context.Context, sc provider.Scope) ([]provider.Instance, error) {
	err := s.call(ctx, "List", sc.Cluster)
	if s.listed == nil || err != nil {
		return nil, err
	}
	return s.listed(), nil
}

func (s *stub) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	return provider.Progress{Message: "deleted"}, s.call(ctx, "Delete", r.Ref.Token)
}

func (s *stub) Plan(ctx context.Context, r provider.UpdateRequest) (provider.Plan, error) {
	return provider.Plan{Reason: "planned"}, s.call(ctx, "Plan", r.Ref.Token)
}

func (s *stub) Update(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
	return provider.Progress{Message: "updated"}, s.call(ctx, "Update", r.Ref.Token)
}

func (s *stub) Validate(ctx context.Context, d provider.Desired) error {
	return s.call(ctx, "Validate", string(d.Config))
}

func (s *stub) Stop(ctx context.Context, ref provider.Ref) (provider.Progress, error) {
	return provider.Progress{Message: "stopped"}, s.call(ctx, "Stop", ref.Token)
}

func (s *stub) Reboot(ctx context.Context, ref provider.Ref, id string) (provider.Progress, error) {
	return provider.Progress{Message: "rebooted"}, s.call(ctx, "Reboot", ref.Token, id)
}

func (s *stub) Adopt(ctx context.Context, r provider.AdoptRequest) (provider.Instance, error) {
	return provider.Instance{Token: r.As.Token, Message: "adopted"}, s.call(ctx, "Adopt", r.From.Token, r.As.Token)
}

func (s *stub) Capacity(ctx context.Context, d provider.Desired) (map[string]string, error) {
	return map[string]string{"cpu": "4"}, s.call(ctx, "Capacity", string(d.Config))
}

func (s *stub) Console(ctx context.Context, ref provider.Ref, limit int) ([]byte, error) {
	return []byte("printed"), s.call(ctx, "Console", ref.Token, limit)
}

func (s *stub) Resize(ctx context.Context, name string, size int, d provider.Desired) error {
	return s.call(ctx, "Resize", name, size, string(d.Config))
}

// having is a provider with other abilities than its methods.
type having struct {
	provider.Provider
	able provider.Abilities
}

func (h having) Abilities() provider.Abilities { return h.able }

// bare has the four methods alone.
type bare struct{ provider.Provider }

// method is one that a provider can have, called about the token "t".
type method struct {
	name string
	// call returns what came back, beside the error.
	call func(ctx context.Context, p provider.Provider) (string, error)
	// seen is what the stub has seen, and back what comes back from it.
	seen, back string
}

// decodes reports whether a typed provider is given a config with the call.
func (m method) decodes() bool {
	return slices.Contains([]string{"Create", "Plan", "Update", "Validate", "Adopt", "Capacity", "Resize"}, m.name)
}

func desired(config string) provider.Desired { return provider.Desired{Config: []byte(config)} }

// methods are all thirteen, with a config where they have one.
func methods(config string) []method {
	ref := provider.Ref{Token: "t"}
	d := desired(config)
	update := provider.UpdateRequest{Ref: ref, Desired: d}
	return []method{
		{"Create", func(ctx context.Context, p provider.Provider) (string, error) {
			i, err := p.Create(ctx, provider.CreateRequest{Token: "t", Desired: d})
			return i.Token, err
		}, "Create t", "t"},
		{"Get", func(ctx context.Context, p provider.Provider) (string, error) {
			i, err := p.Get(ctx, ref)
			return i.Message, err
		}, "Get t", "got"},
		{"List", func(ctx context.Context, p provider.Provider) (string, error) {
			all, err := p.List(ctx, provider.Scope{Cluster: "c"})
			return fmt.Sprint(len(all)), err
		}, "List c", "0"},
		{"Delete", func(ctx context.Context, p provider.Provider) (string, error) {
			done, err := p.Delete(ctx, provider.DeleteRequest{Ref: ref})
			return done.Message, err
		}, "Delete t", "deleted"},
		{"Plan", func(ctx context.Context, p provider.Provider) (string, error) {
			plan, err := provider.AbilitiesOf(p).Planner.Plan(ctx, update)
			return plan.Reason, err
		}, "Plan t", "planned"},
		{"Update", func(ctx context.Context, p provider.Provider) (string, error) {
			done, err := provider.AbilitiesOf(p).Updater.Update(ctx, update)
			return done.Message, err
		}, "Update t", "updated"},
		{"Validate", func(ctx context.Context, p provider.Provider) (string, error) {
			return "", provider.AbilitiesOf(p).Validator.Validate(ctx, d)
		}, "Validate " + config, ""},
		{"Stop", func(ctx context.Context, p provider.Provider) (string, error) {
			done, err := provider.AbilitiesOf(p).Power.Stop(ctx, ref)
			return done.Message, err
		}, "Stop t", "stopped"},
		{"Reboot", func(ctx context.Context, p provider.Provider) (string, error) {
			done, err := provider.AbilitiesOf(p).Power.Reboot(ctx, ref, "7")
			return done.Message, err
		}, "Reboot t 7", "rebooted"},
		{"Adopt", func(ctx context.Context, p provider.Provider) (string, error) {
			i, err := provider.AbilitiesOf(p).Adopter.Adopt(ctx, provider.AdoptRequest{From: ref, As: provider.CreateRequest{Token: "u", Desired: d}})
			return i.Message, err
		}, "Adopt t u", "adopted"},
		{"Capacity", func(ctx context.Context, p provider.Provider) (string, error) {
			has, err := provider.AbilitiesOf(p).Capacity.Capacity(ctx, d)
			return has["cpu"], err
		}, "Capacity " + config, "4"},
		{"Console", func(ctx context.Context, p provider.Provider) (string, error) {
			text, err := provider.AbilitiesOf(p).Console.Console(ctx, ref, 9)
			return string(text), err
		}, "Console t 9", "printed"},
		{"Resize", func(ctx context.Context, p provider.Provider) (string, error) {
			return "", provider.AbilitiesOf(p).Group.Resize(ctx, "g", 3, d)
		}, "Resize g 3 " + config, ""},
	}
}
