// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/belayproject/belay/machine/provider"
)

// broken is a provider on top of a Memory that does some things in its own way.
type broken struct {
	*Memory
	create   func(context.Context, provider.CreateRequest) (provider.Instance, error)
	get      func(context.Context, provider.Ref) (provider.Instance, error)
	list     func(context.Context, provider.Scope) ([]provider.Instance, error)
	delete   func(context.Context, provider.DeleteRequest) (provider.Progress, error)
	plan     func(context.Context, provider.UpdateRequest) (provider.Plan, error)
	update   func(context.Context, provider.UpdateRequest) (provider.Progress, error)
	validate func(context.Context, provider.Desired) error
	stop     func(context.Context, provider.Ref) (provider.Progress, error)
	reboot   func(context.Context, provider.Ref, string) (provider.Progress, error)
	adopt    func(context.Context, provider.AdoptRequest) (provider.Instance, error)
	capacity func(context.Context, provider.Desired) (map[string]string, error)
	console  func(context.Context, provider.Ref, int) ([]byte, error)

	// seen is for what a broken provider remembers of its calls.
	seenMu sync.Mutex
	seen   map[string]int
}

// newBroken returns a provider that does everything as a Memory does.
func newBroken() *broken {
	m := new(Memory)
	return &broken{
		Memory: m, create: m.Create, get: m.Get, list: m.List, delete: m.Delete, plan: m.Plan, update: m.Update, validate: m.Validate,
		stop: m.Stop, reboot: m.Reboot, adopt: m.Adopt, capacity: m.Capacity, console: m.Console, seen: map[string]int{},
	}
}

func (b *broken) Create(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
	return b.create(ctx, r)
}
func (b *broken) Get(ctx context.Context, ref provider.Ref) (provider.Instance, error) {
	return b.get(ctx, ref)
}
func (b *broken) List(ctx context.Context, s provider.Scope) ([]provider.Instance, error) {
	return b.list(ctx, s)
}
func (b *broken) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	return b.delete(ctx, r)
}
func (b *broken) Plan(ctx context.Context, r provider.UpdateRequest) (provider.Plan, error) {
	return b.plan(ctx, r)
}
func (b *broken) Update(ctx context.Context, r provider.UpdateRequest) (provider.Progress, error) {
	return b.update(ctx, r)
}
func (b *broken) Validate(ctx context.Context, d provider.Desired) error { return b.validate(ctx, d) }
func (b *broken) Stop(ctx context.Context, ref provider.Ref) (provider.Progress, error) {
	return b.stop(ctx, ref)
}
func (b *broken) Reboot(ctx context.Context, ref provider.Ref, id string) (provider.Progress, error) {
	return b.reboot(ctx, ref, id)
}
func (b *broken) Adopt(ctx context.Context, r provider.AdoptRequest) (provider.Instance, error) {
	return b.adopt(ctx, r)
}
func (b *broken) Capacity(ctx context.Context, d provider.Desired) (map[string]string, error) {
	return b.capacity(ctx, d)
}
func (b *broken) Console(ctx context.Context, ref provider.Ref, limit int) ([]byte, error) {
	return b.console(ctx, ref, limit)
}

// count adds to a number that is remembered under a name, and returns what it was.
func (b *broken) count(name string, add int) int {
	b.seenMu.Lock()
	defer b.seenMu.Unlock()
	was := b.seen[name]
	b.seen[name] += add
	return was
}

// within changes the backend behind the provider's back.
func (b *broken) within(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// second makes an instance beside that of the token.
func (b *broken) second(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
	token := r.Token
	r.Token = provider.Token(r.Token, "second", int64(b.count("second", 1)))
	i, err := b.Memory.Create(context.WithoutCancel(ctx), r)
	i.Token = token
	return i, err
}

func conflict(token string) error {
	return provider.Errorf(provider.Conflict, "%q is in the way", token)
}

func missing(token string) error { return provider.Errorf(provider.NotFound, "no %q", token) }

// breakage is a way in which providers are broken, and the rule that must see it.
type breakage struct {
	name, caught string
	harness      func(h *Harness)
	apply        func(b *broken)
}

func breakages() []breakage {
	return slices.Concat(brokenCreates(), brokenTokens(), brokenReads(), brokenConfigs(), brokenDeletes(), brokenReach(), brokenDisks(), brokenAdopts(),
		brokenUpdates(), brokenRefusals(), brokenPower(), brokenCrashes(), brokenFaults(), brokenLast())
}

// checkBroken runs the whole suite on a broken provider.
func checkBroken(t *testing.T, b breakage) Report {
	p := newBroken()
	h := p.harness(p)
	h.Many = 50
	b.apply(p)
	if b.harness != nil {
		b.harness(&h)
	}
	return check(t, h)
}

// Each broken provider is caught by the rule that it breaks, which the failure names, and each rule catches one. R-MA-08 asks for InvalidConfig
// without an effect, R-MA-24 for disks that are kept.
func TestBrokenProvidersAreCaught(t *testing.T) {
	var mu sync.Mutex
	caught := map[string]bool{}
	t.Run("each", func(t *testing.T) {
		for _, b := range breakages() {
			t.Run(b.name, func(t *testing.T) {
				report := checkBroken(t, b)
				failed := report.Of(Failed)
				n := slices.IndexFunc(failed, func(r Result) bool { return r.Name == b.caught })
				if n < 0 {
					t.Fatalf("rule %s did not see it; failed: %v", b.caught, failed)
				}
				if text := failed[n].String(); !strings.HasPrefix(text, "rule "+b.caught+": "+failed[n].Text+": ") || failed[n].Why == "" {
					t.Errorf("the failure does not name the rule and what was wrong: %s", text)
				}
				if strings.HasPrefix(failed[n].Why, "panic:") {
					t.Errorf("the rule has seen no more than a panic: %s", failed[n].Why)
				}
				t.Log(failed[n])
				mu.Lock()
				defer mu.Unlock()
				caught[b.caught] = true
			})
		}
	})
	for _, r := range Rules() {
		if !caught[r.Name] {
			t.Errorf("no broken provider shows that rule %s can fail", r.Name)
		}
	}
}

// What makes providers broken here breaks nothing by itself.
func TestUnbrokenProviderPasses(t *testing.T) {
	report := checkBroken(t, breakage{apply: func(*broken) {}})
	if len(report.Of(Passed)) != len(Rules()) {
		t.Errorf("not all rules passed: %s", report)
	}
}
