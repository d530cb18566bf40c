// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/machine/provider"
)

// soon is when a call has to be back after its ctx has ended.
const soon = time.Second

// A checker checks one rule.
type checker struct {
	*suite
	ctx       context.Context
	rule      string
	unchecked []string
	ends      []func()       // of faults
	calls     sync.WaitGroup // that were given up

	mu   sync.Mutex
	made []provider.DeleteRequest // what is to be deleted in the end
}

func (k *checker) failf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

func (k *checker) skipf(format string, args ...any) { panic(skip(fmt.Sprintf(format, args...))) }

// lacking reports whether something is missing, and notes what is not checked for it.
func (k *checker) lacking(n need, part string) bool {
	if k.has(n) {
		return false
	}
	k.unchecked = append(k.unchecked, fmt.Sprintf("%s: %s", part, k.lacks[n]))
	return true
}

func (k *checker) client() provider.Provider {
	p, err := k.h.New(k.ctx)
	if err != nil {
		k.failf("new client: %v", err)
	}
	return p
}

// inject begins a fault. What it returns ends it; at the latest the end of the rule does.
func (k *checker) inject(f Fault) (end func()) {
	begun := k.h.Inject(f)
	if begun == nil {
		k.skipf("the harness can't inject %s", f)
	}
	end = sync.OnceFunc(begun)
	k.ends = append(k.ends, end)
	return end
}

// possible skips a rule before it has made anything, if a fault can't be injected.
func (k *checker) possible(f Fault) { k.inject(f)() }

func (s *suite) wait() time.Duration {
	if s.h.Wait > 0 {
		return s.h.Wait
	}
	return 30 * time.Second
}

// backOff has the pauses between questions within the time to wait.
func (s *suite) backOff() *backoff.Backoff {
	return &backoff.Backoff{First: time.Millisecond, Most: min(s.wait()/20, time.Second)}
}

// poll asks until the answer is yes. It is no when the time to wait is over.
func (k *checker) poll(ask func() bool) bool {
	deadline := time.Now().Add(k.wait())
	for pause := k.backOff(); ; {
		if ask() {
			return true
		}
		k.pause(pause.Next())
		if time.Now().After(deadline) {
			return ask()
		}
	}
}

func (s *suite) cluster(name string) string { return "suite-" + s.run + "-" + name }

// machine returns a request for the first incarnation of a machine that there never was.
func (k *checker) machine() provider.CreateRequest { return k.machineOf("a") }

func (k *checker) machineOf(cluster string) provider.CreateRequest {
	k.suite.mu.Lock()
	k.serial++
	n := k.serial
	k.suite.mu.Unlock()
	return k.incarnation(provider.Owner{
		Cluster: k.cluster(cluster), Namespace: "machines", Name: fmt.Sprintf("m%d", n), UID: fmt.Sprintf("%s-%d", k.run, n), Incarnation: 1,
	})
}

func (k *checker) incarnation(o provider.Owner) provider.CreateRequest {
	r := provider.CreateRequest{Token: provider.Token(o.Cluster, o.UID, o.Incarnation), Owner: o, Join: k.join()}
	return k.with(r, k.h.Config)
}

// with exchanges the config of a request.
func (k *checker) with(r provider.CreateRequest, config []byte) provider.CreateRequest {
	d := k.h.Desired
	d.Config = config
	return wanting(r, d)
}

func wanting(r provider.CreateRequest, d provider.Desired) provider.CreateRequest {
	r.Desired, r.Digest = d, d.Digest()
	return r
}

// unknownField returns a config with a field that the provider does not know, or nil.
func (s *suite) unknownField() []byte {
	if s.h.UnknownField != nil {
		return s.h.UnknownField
	}
	var fields map[string]any
	if err := json.Unmarshal(s.h.Config, &fields); err != nil || fields == nil {
		return nil
	}
	fields["fieldThatNoProviderKnows"] = "x"
	config, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return config
}

func (s *suite) undecodable() []byte {
	if s.h.Undecodable != nil {
		return s.h.Undecodable
	}
	return []byte(`{"fieldThatNeverEnds": `)
}

// count returns what the backend holds beyond what was there before the suite.
func (k *checker) count() Inventory {
	i, err := k.inventory()
	if err != nil {
		k.failf("inventory: %v", err)
	}
	return i
}

func (k *checker) inventory() (Inventory, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), k.wait())
	defer cancel()
	i, err := k.h.Inventory(ctx)
	return Inventory{Instances: i.Instances - k.base.Instances, Disks: i.Disks - k.base.Disks}, err
}

// wantCount waits for the backend to hold so much.
func (k *checker) wantCount(want Inventory, when string) {
	var got Inventory
	if !k.poll(func() bool { got = k.count(); return got == want }) {
		k.failf("%s the backend holds %d instances and %d disks, want %d and %d", when, got.Instances, got.Disks, want.Instances, want.Disks)
	}
}

// wantInstances counts instances alone.
func (k *checker) wantInstances(want int, when string) {
	if got := k.count(); got.Instances != want {
		k.failf("%s the backend holds %d instances, want %d", when, got.Instances, want)
	}
}

// wantNothing is for calls that must not have an effect.
func (k *checker) wantNothing(when string) {
	if got := k.count(); got != (Inventory{}) {
		k.failf("%s the backend holds %d instances and %d disks, want none", when, got.Instances, got.Disks)
	}
}

// each calls a function with all items, some at a time, and returns the errors that there were.
func each[T any](workers int, items []T, call func(T) error) []error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
		slot = make(chan struct{}, workers)
	)
	for _, item := range items {
		slot <- struct{}{}
		wg.Go(func() {
			defer func() { <-slot }()
			if err := call(item); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return errs
}

// settle waits for calls that were given up, but not for ever.
func (k *checker) settle() {
	back := make(chan struct{})
	go func() {
		defer close(back)
		k.calls.Wait()
	}()
	const most = 3 * time.Minute // longer than the fault Latency
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-back:
	case <-timer.C:
		k.unchecked = append(k.unchecked, fmt.Sprintf("what becomes of calls that have not returned for %v", most))
	}
}

// tidy deletes what the rule has made, and notes what is there all the same.
func (k *checker) tidy() {
	for _, end := range k.ends {
		end()
	}
	k.settle()
	k.ctx = context.WithoutCancel(k.ctx)
	k.protect(func(k *checker) {
		p := k.client()
		each(16, k.made, func(d provider.DeleteRequest) error {
			_, err := k.deleted(p, d)
			return err
		}) // what stays is seen in the inventory
	})
	left, err := k.inventory()
	if left != (Inventory{}) || err != nil {
		k.left = append(k.left, fmt.Sprintf("%s left %d instances and %d disks (error: %v)", k.rule, left.Instances, left.Disks, err))
	}
	if k.h.Clean != nil {
		if err := k.h.Clean(k.ctx); err != nil {
			k.left = append(k.left, fmt.Sprintf("%s: clean: %v", k.rule, err))
		}
	}
	if now, err := k.h.Inventory(k.ctx); err == nil {
		k.base = now
	}
}
