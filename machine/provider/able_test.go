// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// decorator is one way to put something around a provider.
type decorator struct {
	name string
	wrap func(provider.Provider) provider.Provider
}

func decorators() []decorator {
	all := []decorator{
		{"RateLimit", func(p provider.Provider) provider.Provider {
			return provider.RateLimit(p, provider.RateLimitOptions{Burst: 100})
		}},
		{"CoalesceGet", func(p provider.Provider) provider.Provider {
			return provider.CoalesceGet(p, provider.Scope{Cluster: "c"}, provider.CoalesceOptions{})
		}},
		{"Breaker", func(p provider.Provider) provider.Provider {
			return provider.Breaker(p, provider.BreakerOptions{Failures: 1000})
		}},
		{"Timeout", func(p provider.Provider) provider.Provider { return provider.Timeout(p, 0) }},
		{"Observe", func(p provider.Provider) provider.Provider { return provider.Observe(p, func(provider.Call) {}) }},
		{"Minimal", func(p provider.Provider) provider.Provider { return provider.Minimal(p) }},
	}
	stacked := slices.Clone(all)
	return append(all, decorator{"all of them", func(p provider.Provider) provider.Provider {
		for _, d := range stacked {
			p = d.wrap(p)
		}
		return p
	}})
}

// names of the abilities that are there.
func names(a provider.Abilities) []string {
	var has []string
	v := reflect.ValueOf(a)
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			has = append(has, v.Type().Field(i).Name)
		}
	}
	return has
}

// R-MA-09, R-MA-10: a decorator keeps each ability and adds none.
func TestDecoratorsKeepAbilities(t *testing.T) {
	whole := reflect.ValueOf(provider.AbilitiesOf(&stub{}))
	if n := len(names(whole.Interface().(provider.Abilities))); n != whole.NumField() {
		t.Fatalf("the stub has %d of %d abilities", n, whole.NumField())
	}
	for _, d := range decorators() {
		if has := names(provider.AbilitiesOf(d.wrap(bare{&stub{}}))); has != nil {
			t.Errorf("%s around a provider without abilities has %v", d.name, has)
		}
		for i := range whole.NumField() {
			var one provider.Abilities
			reflect.ValueOf(&one).Elem().Field(i).Set(whole.Field(i))
			got := names(provider.AbilitiesOf(d.wrap(having{&stub{}, one})))
			if want := names(one); !slices.Equal(got, want) {
				t.Errorf("%s around a provider with %v has %v", d.name, want, got)
			}
		}
	}
}

// Every call comes through with its arguments, and its result and error come back.
func TestDecoratorsPassCalls(t *testing.T) {
	broken := provider.Errorf(provider.Stockout, "no more")
	for _, d := range decorators() {
		for _, m := range methods("c") {
			synctest.Test(t, func(t *testing.T) {
				s := &stub{}
				p := d.wrap(s)
				if got, err := m.call(t.Context(), p); got != m.back || err != nil {
					t.Errorf("%s: %s = %q, %v, want %q", d.name, m.name, got, err, m.back)
				}
				if calls := s.took(); !slices.Equal(calls, []string{m.seen}) {
					t.Errorf("%s: %s: the provider has seen %q, want %q", d.name, m.name, calls, m.seen)
				}
				time.Sleep(time.Minute)
				s.do = func(context.Context, string, string) error { return broken }
				if _, err := m.call(t.Context(), p); !errors.Is(err, broken) {
					t.Errorf("%s: %s: %v, want the provider's error", d.name, m.name, err)
				}
			})
		}
	}
}

// Abilities are those of the methods, unless the provider says itself what it has.
func TestAbilitiesOf(t *testing.T) {
	for _, c := range []struct {
		name string
		p    provider.Provider
		want []string
	}{
		{"all", &stub{}, []string{"Planner", "Updater", "Validator", "Power", "Adopter", "Capacity", "Console", "Group"}},
		{"none", bare{&stub{}}, nil},
		{"nil", nil, nil},
		{"less than the methods", modest{&stub{}, provider.Abilities{Power: &stub{}}}, []string{"Power"}},
		{"none in spite of the methods", modest{&stub{}, provider.Abilities{}}, nil},
	} {
		if got := names(provider.AbilitiesOf(c.p)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// modest has all methods, and says that it can do less.
type modest struct {
	*stub
	able provider.Abilities
}

func (m modest) Abilities() provider.Abilities { return m.able }

// halfway can create and delete.
type halfway struct{ s *stub }

func (c halfway) Create(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
	return c.s.Create(ctx, r)
}

func (c halfway) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	return c.s.Delete(ctx, r)
}

// rebooter can switch off, too.
type rebooter struct {
	halfway
	provider.Power
}

// R-MA-09: what can only create and delete is a provider that says what it doesn't know.
func TestMinimal(t *testing.T) {
	s := &stub{}
	p := provider.Minimal(halfway{s})
	if i, err := p.Create(t.Context(), provider.CreateRequest{Token: "t"}); i.Token != "t" || err != nil {
		t.Errorf("Create = %v, %v", i, err)
	}
	if done, err := p.Delete(t.Context(), provider.DeleteRequest{Ref: provider.Ref{Token: "t"}}); done.Message != "deleted" || err != nil {
		t.Errorf("Delete = %v, %v", done, err)
	}
	if _, err := p.Get(t.Context(), provider.Ref{Token: "t"}); provider.ClassOf(err) != provider.NotSupported {
		t.Errorf("Get: %v, want NotSupported: NotFound would be a claim", err)
	}
	if _, err := p.List(t.Context(), provider.Scope{}); provider.ClassOf(err) != provider.NotSupported {
		t.Errorf("List: %v, want NotSupported: an empty list would be a claim", err)
	}
	if calls := s.took(); !slices.Equal(calls, []string{"Create t", "Delete t"}) {
		t.Errorf("calls %q", calls)
	}
	if got := names(provider.AbilitiesOf(provider.Minimal(rebooter{halfway{s}, s}))); !slices.Equal(got, []string{"Power"}) {
		t.Errorf("abilities %v, want those of what it was made of: Power", got)
	}
	if whole := provider.Provider(s); provider.Minimal(s) != whole {
		t.Error("a whole provider was made less")
	}
}
