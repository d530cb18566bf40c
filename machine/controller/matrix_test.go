// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/provider"
)

// A story is a life in a world of its own. Its calls are counted from [world.begin] on. What it tells has to be the same wherever it was killed.
type story func(w *world) []string

// matrix tells a story once to count its calls, and then again for each half of each call, killed there. What
// is killed has lost all that it knew: of half-calls between which nothing changes, as those of reads, one is enough. At calls that are chosen it is also killed with caches
// that stay what they were some calls before, and frozen before the call, while another controller goes on.
func matrix(t *testing.T, tell story, chosen func(call string) bool) {
	t.Helper()
	var r recording
	synctest.Test(t, func(t *testing.T) { r = record(t, tell) })
	if t.Failed() {
		return
	}
	step := raceshare.Step(t)
	if step > 1 {
		step++ // odd: before calls and after them
	}
	for at := 0; at < len(r.moments); at += step {
		again := step == 1 && at > 0 && r.moments[at] == r.moments[at-1]
		few := !chosen(r.trace[at/2])
		for how, left := range map[string]bool{"killed": again, staleAll: again || few, staleMachines: again || few || !r.pool, frozen: at%2 == 1 || few} {
			if left {
				continue
			}
			synctest.Test(t, func(t *testing.T) { mishap(t, tell, r.tale, at, how) })
			if t.Failed() {
				t.Fatalf("%s at half-call %d of %d", how, at, len(r.moments))
			}
		}
	}
}

// What may happen to a controller, besides that it is killed.
const (
	staleAll      = "killed with stale caches"
	staleMachines = "killed with a stale cache of machines"
	frozen        = "frozen"
)

// A recording is a story without a mishap: what it tells, its calls, and the moments of their halves. pool means that there are sets.
type recording struct {
	tale, trace []string
	moments     []moment
	pool        bool
}

func record(t *testing.T, tell story) (r recording) {
	w := watched(t)
	r.tale = tell(w)
	w.clean()
	if r.pool, r.moments, r.trace = w.groups != nil, w.moments, w.trace; w.told > 0 {
		r.moments, r.trace = r.moments[:w.told], r.trace[:w.told/2]
	}
	t.Logf("%d calls, with %d moments before and after them: %s", len(r.trace), len(slices.Compact(slices.Clone(r.moments))), counted(r.trace))
	return r
}

// mishap tells a story with one mishap.
func mishap(t *testing.T, tell story, want []string, at int, how string) {
	w := watched(t)
	w.due = func() {
		switch how {
		case frozen:
			w.at = w.frozen(at)
		case "killed":
			w.kill = at
		default:
			w.kill, w.freezeAt, w.passes = at, max(at-7, 0), 12
			w.half = how == staleMachines
		}
	}
	if diff := cmp.Diff(want, tell(w)); diff != "" {
		t.Errorf("what was told (-want +got):\n%s", diff)
	}
	w.clean()
	if how != frozen && w.kills != 1 {
		t.Errorf("killed %d times", w.kills)
	}
	if t.Failed() {
		t.Logf("the calls were %v", w.trace)
	}
}

// frozen holds the controllers before a half-call for as long as others need for some passes. Then the call goes out, and both go on.
func (w *world) frozen(at int) func(n int) {
	return func(n int) {
		if n != at {
			return
		}
		first, group := w.ctl, w.group
		w.start()
		for range 15 {
			after := time.Second
			for _, key := range w.keys() {
				after = max(after, min(w.pass(key), 20*time.Second))
			}
			if w.groups != nil {
				w.groups.pass()
			}
			<-time.After(after)
		}
		w.second, w.secondGroup = first, group
	}
}

// begin has the calls counted from here on, and what is due happen.
func (w *world) begin() {
	w.calls, w.trace, w.moments = 0, nil, nil
	if w.due != nil {
		w.due()
	}
}

// enough has the calls counted no more: what follows is told by another story.
func (w *world) enough() {
	if w.told == 0 {
		w.told = w.calls
	}
}

// over ends a story: what the provider has retained is told and recycled, and whatever it has besides is left for clean to find.
func (w *world) over(tale []string) []string {
	w.t.Helper()
	w.at, w.need, w.keep = nil, nil, nil
	for _, i := range w.cloud.Instances() {
		if i.State != provider.Retained {
			continue
		}
		for _, d := range i.Disks {
			tale = append(tale, "left "+d.ID)
		}
		if _, err := w.cloud.Delete(w.t.Context(), provider.DeleteRequest{Ref: i.Ref(), Mode: provider.Destroy, Cluster: clusterID}); err != nil {
			w.t.Error(err)
		}
	}
	return tale
}

// counted are the calls of a trace, with how often each was made.
func counted(trace []string) string {
	n := map[string]int{}
	for _, call := range trace {
		n[call]++
	}
	var all []string
	for _, call := range slices.Sorted(maps.Keys(n)) {
		all = append(all, call+" "+strings.Repeat("I", n[call]))
	}
	return strings.Join(all, ", ")
}

// watched is a world that sees what a controller reads too.
func watched(t *testing.T) *world {
	w := newWorld(t)
	w.options.Machines, w.options.Nodes, w.options.Provider = reader{w.store, w}, nodeReader{w.nodes, w}, asker{cloud{w.cloud, w}}
	w.start()
	return w
}

// keys are those of all machines.
func (w *world) keys() []machine.Key {
	all, err := w.store.ListLive(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	keys := make([]machine.Key, 0, len(all))
	for _, m := range all {
		keys = append(keys, m.Key)
	}
	slices.SortFunc(keys, func(a, b machine.Key) int { return strings.Compare(a.Name, b.Name) })
	return keys
}

// reader is a store whose reads the world sees.
type reader struct {
	*controllertest.Store
	w *world
}

func (r reader) Get(ctx context.Context, key machine.Key) (machine.Machine, error) {
	return seen(r.w, "GetMachine", func() (machine.Machine, error) { return r.Store.Get(ctx, key) })
}

func (r reader) Live(ctx context.Context, key machine.Key) (machine.Machine, error) {
	return seen(r.w, "GetMachineLive", func() (machine.Machine, error) { return r.Store.Live(ctx, key) })
}

func (r reader) List(ctx context.Context) ([]machine.Machine, error) {
	return seen(r.w, "ListMachines", func() ([]machine.Machine, error) { return r.Store.List(ctx) })
}

func (r reader) ListLive(ctx context.Context) ([]machine.Machine, error) {
	return seen(r.w, "ListMachinesLive", func() ([]machine.Machine, error) { return r.Store.ListLive(ctx) })
}

func (r reader) Twins(ctx context.Context, m machine.Machine, id string) ([]machine.Key, error) {
	return seen(r.w, "Twins", func() ([]machine.Key, error) { return r.Store.Twins(ctx, m, id) })
}

// nodeReader is a cluster whose reads the world sees.
type nodeReader struct {
	*controllertest.Cluster
	w *world
}

func (r nodeReader) Of(ctx context.Context, token string) ([]machine.Node, error) {
	return seen(r.w, "GetNode", func() ([]machine.Node, error) { return r.Cluster.Of(ctx, token) })
}

func (r nodeReader) Live(ctx context.Context, token string) ([]machine.Node, error) {
	return seen(r.w, "GetNodeLive", func() ([]machine.Node, error) { return r.Cluster.Live(ctx, token) })
}

// asker is a provider that is seen to be asked, too, and whose Get is a look alone: what is Pending goes on by Create.
type asker struct{ cloud }

func (a asker) Get(_ context.Context, r provider.Ref) (provider.Instance, error) {
	return seen(a.w, "Get", func() (provider.Instance, error) {
		for _, i := range a.w.cloud.Instances() {
			if i.Token == r.Token {
				return i, nil
			}
		}
		return provider.Instance{}, provider.Errorf(provider.NotFound, "there is no instance %q", r.Token)
	})
}

func (a asker) Validate(ctx context.Context, d provider.Desired) error {
	_, err := seen(a.w, "Validate", func() (struct{}, error) { return struct{}{}, a.Memory.Validate(ctx, d) })
	return err
}

func (a asker) List(ctx context.Context, s provider.Scope) ([]provider.Instance, error) {
	return seen(a.w, "List", func() ([]provider.Instance, error) { return a.Memory.List(ctx, s) })
}
