// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/backoff"
)

// A drainerCase is one promise of package drain.
type drainerCase struct {
	rule string
	test func(y *yard)
}

// TestDrainer checks a Drainer's promise on a bed, one test for each part. Around, where given, runs each of them; pass synctest.Test for
// a bed that lives in a bubble.
func TestDrainer(t *testing.T, bed func(t *testing.T) Bed, around ...func(*testing.T, func(*testing.T))) {
	t.Helper()
	runDrainerCases(t, slices.Concat(orderCases(), setCases(), nodeCases(), cordonCases()), bed, around)
}

// TestDrainerFaults checks that a Drainer comes to the right end whatever goes wrong on the way. It needs hours where time is real: run it
// in bubbles, and [TestDrainerFaultsAtOnce] elsewhere.
func TestDrainerFaults(t *testing.T, bed func(t *testing.T) Bed, around ...func(*testing.T, func(*testing.T))) {
	t.Helper()
	runDrainerCases(t, slices.Concat(faultCases(), repeatedCases(), crashCases()), bed, around)
}

// TestDrainerFaultsAtOnce is [TestDrainerFaults] for beds where time is real: every fault on every kind of request, in a minute. Its cases
// wait most of the time, so that as many as atOnce run at a time, each on a bed of its own. It leaves out those where four evictions in a
// row are spoilt, as they wait for minutes, and those where the process dies, as here that is no more than another Drainer.
func TestDrainerFaultsAtOnce(t *testing.T, bed func(t *testing.T) Bed, atOnce int) {
	t.Helper()
	slots := make(chan struct{}, max(atOnce, 1))
	var running sync.WaitGroup
	for _, c := range faultCases() {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			runDrainerCases(t, []drainerCase{c}, bed, nil)
		})
	}
	running.Wait()
}

// faultCases spoil one request, or one kind of them for good.
func faultCases() []drainerCase {
	return slices.Concat(answerCases(), oddPodCases(), deleteCases(), writeFaultCases(), readCases(), blindCases())
}

func runDrainerCases(t *testing.T, cases []drainerCase, bed func(t *testing.T) Bed, around []func(*testing.T, func(*testing.T))) {
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			run := func(t *testing.T) { c.test(newYard(t, c.rule, bed(t))) }
			for _, wrap := range around {
				inner := run
				run = func(t *testing.T) { wrap(t, inner) }
			}
			run(t)
		})
	}
}

// A yard is a bed with a Drainer in it, and the book of what has been seen.
type yard struct {
	Bed
	t     *testing.T
	rule  string
	parts drain.Options

	drainer *drain.Drainer
	wake    chan struct{}
	stop    func()

	mu     sync.Mutex
	guests map[types.UID]string // pods that the cache has shown, with their node
	checks []func()             // after each change that the cache shows
	failed []error              // what passes returned
}

func newYard(t *testing.T, rule string, b Bed) *yard {
	y := &yard{Bed: b, t: t, rule: rule, parts: b.Parts(t), wake: make(chan struct{}, 1), guests: map[types.UID]string{}}
	stop := y.parts.Cache.Watch(y.look)
	y.start()
	t.Cleanup(func() {
		stop()
		y.stop()
	})
	return y
}

// start makes a Drainer that knows nothing, as a process does that has just begun.
func (y *yard) start() {
	if y.stop != nil {
		y.stop()
	}
	d, err := drain.New(y.parts)
	if err != nil {
		y.t.Fatalf("rule %q: making a Drainer: %v", y.rule, err)
	}
	y.drainer = d
	y.stop = d.Watch(func(string) {
		select {
		case y.wake <- struct{}{}:
		default:
		}
	})
}

// look writes down who is where.
func (y *yard) look(change drain.Change) {
	if change.Node != "" {
		pods := y.parts.Cache.Pods(change.Node)
		y.mu.Lock()
		for _, pod := range pods {
			y.guests[pod.UID] = pod.Spec.NodeName
		}
		y.mu.Unlock()
	}
	y.mu.Lock()
	checks := slices.Clone(y.checks)
	y.mu.Unlock()
	for _, check := range checks {
		check()
	}
}

// always has f called after each change that the cache shows from now on.
func (y *yard) always(f func()) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.checks = append(y.checks, f)
}

func (y *yard) errorf(format string, args ...any) {
	y.t.Helper()
	y.t.Errorf("rule %q: %s", y.rule, fmt.Sprintf(format, args...))
}

// fatalf ends the test with the requests that were made.
func (y *yard) fatalf(format string, args ...any) {
	y.t.Helper()
	var log strings.Builder
	for _, call := range y.Plot().Log() {
		fmt.Fprintln(&log, call)
	}
	y.t.Fatalf("rule %q: %s; requests:\n%s", y.rule, fmt.Sprintf(format, args...), log.String())
}

// request is one of the suite's usual holder.
func (y *yard) request(node string, mode drain.Mode) drain.Request {
	return drain.Request{Node: node, Holder: "suite/a", Maintenance: "m1", Mode: mode}
}

// A wish is what a test waits for.
type wish func(drain.Status) bool

func phase(want drain.Phase) wish {
	return func(st drain.Status) bool { return st.Phase == want }
}

// blocked wishes for one blocker with the reason.
func blocked(reason drain.Reason) wish {
	return func(st drain.Status) bool {
		return slices.ContainsFunc(st.Blockers, func(b drain.Blocker) bool { return b.Reason == reason })
	}
}

// reconcile makes passes until the wish has come true: the next one when the Drainer asks for it, or says that something has changed.
func (y *yard) reconcile(r drain.Request, want wish) drain.Status {
	y.t.Helper()
	deadline := time.Now().Add(y.Patience())
	for {
		st, after, err := y.drainer.ReconcileRequest(y.t.Context(), r)
		if errors.Is(err, ErrCrash) || y.Plot().Crashed() {
			return st
		}
		if err == nil && want(st) {
			return st
		}
		y.note(err)
		r.Last = &st
		left := time.Until(deadline)
		if left <= 0 {
			y.fatalf("node %s after %v: got %+v, error %v", r.Node, y.Patience(), st, err)
		}
		if after == 0 || after > left {
			after = left
		}
		y.wait(after)
	}
}

// wait ends after d, or when the Drainer's watch says that there is something to do.
func (y *yard) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-y.wake:
	case <-timer.C:
	case <-y.t.Context().Done():
	}
}

// pass lets time pass, in which the Drainer goes on with the request.
func (y *yard) pass(r drain.Request, d time.Duration) drain.Status {
	y.t.Helper()
	end := time.Now().Add(d)
	for {
		st, after, err := y.drainer.ReconcileRequest(y.t.Context(), r)
		if y.note(err); err != nil {
			st.Message += fmt.Sprintf(" (error: %v)", err)
		}
		r.Last = &st
		left := time.Until(end)
		if left <= 0 {
			return st
		}
		if after == 0 || after > left {
			after = left
		}
		y.wait(after)
	}
}

// release takes the holder off the node.
func (y *yard) release(r drain.Request) {
	y.t.Helper()
	r.Mode, r.Last = drain.Release, nil
	y.reconcile(r, phase(drain.Released))
}

// eventually waits until check returns nil.
func (y *yard) eventually(what string, check func() error) {
	y.t.Helper()
	deadline := time.Now().Add(y.Patience())
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			y.fatalf("%s: after %v: %v", what, y.Patience(), err)
		}
		if !backoff.Sleep(y.t.Context(), 50*time.Millisecond) {
			y.fatalf("%s: the test ended: %v", what, err)
		}
	}
}

// empty checks that nothing of the test's namespace is on the node any more.
func (y *yard) empty(node string) {
	y.t.Helper()
	for _, pod := range y.GetPods(y.t, node) {
		if pod.Namespace == y.Namespace() {
			y.errorf("node %s: got pod %s still there, want none", node, pod.Name)
		}
	}
}

// onlyPlanned checks the log: evictions alone, each with the UID of a pod that was on one of the nodes.
func (y *yard) onlyPlanned(nodes ...string) {
	y.t.Helper()
	y.planned(nodes)
	if deletes := y.Plot().Log(Delete); len(deletes) > 0 {
		y.errorf("got %d DELETEs, the first %v, want none", len(deletes), deletes[0])
	}
}

// planned checks in the log that who was asked to leave was on one of the nodes, and is named by its UID.
func (y *yard) planned(nodes []string) {
	y.t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, call := range y.Plot().Log(Evict, Delete) {
		if on, known := y.guests[call.UID]; !known || !slices.Contains(nodes, on) {
			y.errorf("%s of %s, UID %q, which was on %q: want pods of %v alone", call.Verb, call.Object, call.UID, on, nodes)
		}
	}
}

// note keeps the error of a pass.
func (y *yard) note(err error) {
	if err != nil {
		y.failed = append(y.failed, err)
	}
}

// writes counts the Node writes that the server has carried out.
func (y *yard) writes(node string) int {
	n := 0
	for _, call := range y.Plot().Log(PatchNode) {
		if call.Object == node && call.Wrote {
			n++
		}
	}
	return n
}

// clean checks that the node is as it was before any holder came.
func (y *yard) clean(name string) {
	y.t.Helper()
	node := y.GetNode(y.t, name)
	if node == nil {
		y.fatalf("node %s: got none", name)
	}
	if _, marked := node.Annotations[drain.MarkAnnotation]; marked || node.Spec.Unschedulable {
		y.errorf("node %s: got mark %q and unschedulable %v, want neither", name, node.Annotations[drain.MarkAnnotation], node.Spec.Unschedulable)
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeOutOfService {
			y.errorf("node %s: got the taint %s, want it gone", name, taint.Key)
		}
	}
}
