// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	crashAtOnce   = 4
	crashMost     = 60                // writes at most, or the drain does not end
	crashPer      = 4                 // of them in one maintenance
	crashLongest  = 3 * time.Second   // after its start, a child has done all that it can
	crashFailures = 3                 // as many are enough to see what is wrong
	crashBudget   = 230 * time.Second // for each test, where go test has no deadline
	crashReserve  = time.Minute       // before that deadline, for what a failure has to tell
)

// crashRandom is how many kills there are at random instants.
func crashRandom() int {
	if whole() {
		return 50
	}
	return 8
}

// TestKilledAtAnyWriteItGoesOn kills the drain once in each maintenance: when it is about to send its k-th write, and
// when the server has carried that out and the drain has not heard of it; for each k. Without whole it is for each
// fourth k one of the two, in turn. R-DR-07
func TestKilledAtAnyWriteItGoesOn(t *testing.T) {
	w := newCrashWorkers(t)
	var most atomic.Int64 // the least k that no child has reached
	most.Store(crashMost)
	for k := 1; k <= crashMost && int64(k) < most.Load(); k++ {
		for _, sent := range []bool{false, true} {
			if !whole() && (k%4 != 1 || sent != (k%8 == 1)) {
				continue
			}
			w.do(t, fmt.Sprintf("write %d, sent: %t", k, sent), func(ctx context.Context, s *scenario) error {
				v, err := s.process(ctx, k, sent, 0)
				if err != nil {
					return err
				}
				if v.finished {
					most.Store(min(most.Load(), int64(k)))
					return nil
				}
				return s.finish(ctx)
			})
		}
	}
	w.done(t)
	t.Logf("killed at each of %d writes; before and after: %t", most.Load()-1, whole())
	if most.Load() < 20 || most.Load() == crashMost {
		t.Errorf("the drain ended after %d writes, want 22 or so", most.Load())
	}
}

// TestProcessesThatDieAtTheirFirstWriteGetThere lets each process do one write, of which it does not hear. R-DR-07
func TestProcessesThatDieAtTheirFirstWriteGetThere(t *testing.T) {
	w := newCrashWorkers(t)
	for range 2 { // with and without a status that is kept
		w.do(t, "one write each", func(ctx context.Context, s *scenario) error {
			for range crashMost {
				if v, err := s.process(ctx, 1, true, 0); err != nil || v.finished {
					return err
				}
			}
			return fmt.Errorf("the nodes are not released after %d processes", crashMost)
		})
	}
	w.done(t)
}

// TestKilledAtRandomItGoesOn kills the drain several times in each maintenance, at instants that the seed chooses. R-DR-07
func TestKilledAtRandomItGoesOn(t *testing.T) {
	seed := seedFor(t)
	w := newCrashWorkers(t)
	// A drain may be over before its first kill: there are more of them than kills, if need be.
	for i := 0; w.killed() < crashRandom() && i < 4*crashRandom(); i++ {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		w.do(t, fmt.Sprintf("%s=%d, maintenance %d", seedEnv, seed, i), func(ctx context.Context, s *scenario) error {
			for range crashPer {
				v, err := s.process(ctx, 0, false, time.Duration(1+rng.Int64N(int64(crashLongest))))
				if err != nil || v.finished {
					return err
				}
			}
			return s.finish(ctx)
		})
	}
	w.done(t)
	if w.kills < crashRandom() {
		t.Errorf("there were %d kills, want %d", w.kills, crashRandom())
	}
}

// crashWorkers run scenarios, several at once, each in a namespace that it has to itself.
type crashWorkers struct {
	ctx    context.Context
	dir    string
	places chan *cluster
	wg     sync.WaitGroup

	mu                      sync.Mutex
	number, failed          int
	kills, repeats, refunds int
}

func newCrashWorkers(t *testing.T) *crashWorkers {
	t.Helper()
	budget := crashBudget
	if deadline, ok := t.Deadline(); ok { // how long many children take is up to the machine, and each of them is waited for with patience
		budget = time.Until(deadline) - crashReserve
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), budget, fmt.Errorf("the test has taken longer than %s", budget))
	t.Cleanup(cancel)
	w := &crashWorkers{ctx: ctx, dir: t.TempDir(), places: make(chan *cluster, crashAtOnce)}
	c := place(t, shared.Env(t))
	playKubelets(t, c.api, corev1.NamespaceAll)
	must(t, grant(ctx, c.api))
	w.places <- c
	for range crashAtOnce - 1 {
		w.places <- place(t, shared.Env(t))
	}
	return w
}

// do runs one scenario as soon as there is a place, unless enough have failed.
func (w *crashWorkers) do(t *testing.T, name string, kill func(context.Context, *scenario) error) {
	c := <-w.places
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed >= crashFailures || w.ctx.Err() != nil {
		w.places <- c
		return
	}
	w.number++
	number := w.number
	w.wg.Go(func() {
		s, err := newScenario(w.ctx, c, w.dir, number)
		if err == nil {
			err = kill(w.ctx, s)
		}
		if err == nil {
			err = s.check(w.ctx)
		}
		if s != nil {
			err = errors.Join(err, s.clean(w.ctx))
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.places <- c
		if err != nil {
			w.failed++
			t.Errorf("%s (%s): %v", name, c.name, err)
			return
		}
		w.kills, w.repeats, w.refunds = w.kills+s.kills, w.repeats+s.repeats, w.refunds+s.refunds
	})
}

func (w *crashWorkers) killed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kills
}

func (w *crashWorkers) done(t *testing.T) {
	t.Helper()
	w.wg.Wait()
	t.Logf("%d maintenances, %d kills; %d evictions were asked for again of those that the server accepted, or may have; %d were given up halfway by the server", w.number, w.kills, w.repeats, w.refunds)
	if err := context.Cause(w.ctx); err != nil {
		t.Error(err)
	}
}

// check reads from the server what the drain has done, whatever happened to its processes.
func (s *scenario) check(ctx context.Context) error {
	events, err := auditOf(ctx, s.env.AuditLog(), s.user)
	if err != nil {
		return err
	}
	did := deeds{accepted: map[types.UID]int{}, writes: map[string]int{}, unsure: map[string]int{}}
	for _, e := range events {
		if err := s.count(e, did); err != nil {
			return err
		}
	}
	for node := range s.prior {
		if n, m := did.writes[node], did.unsure[node]; n > 3 || n+m < 3 {
			return fmt.Errorf("node %q was written %d times, and perhaps %d more, want 3: cordoned, drained, released:%s", node, n, m, describe(events))
		}
	}
	return errors.Join(s.everybodyLeft(did.accepted), s.asBefore(ctx), s.othersStay(ctx))
}

// deeds are what a drain has done, over all its processes.
type deeds struct {
	accepted       map[types.UID]int // evictions that the server has accepted, or may have
	writes, unsure map[string]int    // by node, those that it has carried out, and those that it may have
}

// count takes in one request, and refuses what a drain of these nodes must never ask for.
func (s *scenario) count(e auditEvent, did deeds) error {
	if len(e.RequestObject) == 0 && e.ResponseStatus.Code >= 400 {
		return nil // the client was killed while it sent this
	}
	switch {
	case e.isEviction():
		uid, err := e.target()
		if err != nil {
			return err
		}
		if s.planned[uid] != e.ObjectRef.Name {
			return fmt.Errorf("%s: UID %q was not on the nodes", e, uid)
		}
		if e.ResponseStatus.Code == 201 || e.abandoned() {
			did.accepted[uid]++
		}
	case e.isNodeWrite():
		if _, ours := s.prior[e.ObjectRef.Name]; !ours {
			return fmt.Errorf("%s: that node is none of the drain's", e)
		}
		if e.ResponseStatus.Code == 200 {
			did.writes[e.ObjectRef.Name]++
		} else if e.abandoned() {
			did.unsure[e.ObjectRef.Name]++
		}
	default:
		return fmt.Errorf("%s: want nothing but patches of nodes and evictions", e)
	}
	return nil
}

// everybodyLeft checks that each pod was evicted. What was accepted again was no second eviction: the UID of the first is a
// precondition, and a pod that is ending is ending still.
func (s *scenario) everybodyLeft(accepted map[types.UID]int) error {
	for uid, name := range s.planned {
		n := accepted[uid]
		if n == 0 && name != "twin" {
			return fmt.Errorf("pod %q was not evicted", name)
		}
		if n > 1 {
			s.repeats += n - 1
		}
	}
	return nil
}

// asBefore checks that the nodes are empty and as they were found.
func (s *scenario) asBefore(ctx context.Context) error {
	for name, prior := range s.prior {
		node, err := s.api.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if marked(node) || node.Spec.Unschedulable != prior {
			return fmt.Errorf("node %q is left with annotations %q and unschedulable %t, want no mark and %t", name, node.Annotations, node.Spec.Unschedulable, prior)
		}
		pods, err := s.podsOn(ctx, name)
		if err != nil {
			return err
		}
		if len(pods) > 0 {
			return fmt.Errorf("node %q is released with %d pods on it, want none: %s", name, len(pods), pods[0].Name)
		}
	}
	return nil
}

// othersStay checks that no pod elsewhere was touched: neither the twin nor any replacement.
func (s *scenario) othersStay(ctx context.Context) error {
	pods, err := s.podsOn(ctx, s.spare)
	if err != nil {
		return err
	}
	twin := false
	for _, p := range pods {
		if p.DeletionTimestamp != nil || hasCondition(&p, corev1.DisruptionTarget) {
			return fmt.Errorf("pod %q on the spare node was evicted", p.Name)
		}
		twin = twin || p.UID == s.moved
	}
	if !twin && s.moved != "" {
		return errors.New("the twin is gone from the spare node")
	}
	return s.healthy(ctx, "web", 9)
}

func hasCondition(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return true
		}
	}
	return false
}
