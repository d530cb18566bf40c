// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/controller/controllertest"
	"github.com/belayproject/belay/rollout/protocol"
)

const (
	uid  = "rollout-1"
	zone = "topology.kubernetes.io/zone"
	// tick is how long agents and drains take for a step.
	tick = 10 * time.Second
)

func revision(name string) rollout.Revision {
	return rollout.Revision{Name: name, Digest: "sha256:" + name}
}

func number(n int) intstr.IntOrString { return intstr.FromInt32(int32(n)) }

func size(n int) *intstr.IntOrString { v := number(n); return &v }

// A world is a cluster with one controller.
type world struct {
	t      *testing.T
	c      *controllertest.Cluster
	client *controllertest.Client
	o      controller.Options
	ctl    *controller.Controller
	policy rollout.Policy
	errs   []error
}

// newWorld has n nodes with the label role=worker that run v1 and should run v2, so many at a time.
func newWorld(t *testing.T, n, at int) *world {
	t.Helper()
	w := &world{t: t, c: controllertest.New(controllertest.Options{Caps: []protocol.Cap{{Max: at}}})}
	w.policy = rollout.Policy{
		UID: uid, Target: revision("v2"), Completed: revision("v1"), Detectors: []rollout.Detector{},
		Groups: []rollout.Group{{Name: "workers", Selector: labels.SelectorFromSet(labels.Set{"role": "worker"})}},
		Caps:   []rollout.Cap{{Scope: rollout.Total, Max: number(at)}},
	}
	for i := range n {
		w.add(i)
	}
	w.client = w.c.Connect()
	w.o = w.client.Options()
	w.start()
	return w
}

func name(i int) string { return fmt.Sprintf("node-%02d", i) }

func (w *world) add(i int) {
	w.c.AddNode(name(i), map[string]string{"role": "worker", zone: string(rune('a' + i%3))}, protocol.Revision{Name: "v1", Digest: "sha256:v1"})
}

// want makes the policy of the world the one that somebody wants.
func (w *world) want() { w.c.PutRollout("workers", w.policy) }

// ask makes a request.
func (w *world) ask(request string, do rollout.Do, node ...string) {
	w.policy.Verb = rollout.Verb{Request: request, Do: do}
	if len(node) > 0 {
		w.policy.Verb.Node = node[0]
	}
	w.want()
}

func (w *world) start() {
	ctl, err := controller.New(w.o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.ctl = ctl
}

// quiet is a context in which nothing is logged.
func quiet(t *testing.T) context.Context { return klog.NewContext(t.Context(), klog.Logger{}) }

// pass makes one pass, which may be killed; then there is another controller.
func (w *world) pass() {
	done := make(chan bool, 1)
	go func() {
		killed := true
		defer func() { done <- killed }()
		if _, err := w.ctl.Reconcile(quiet(w.t), ""); err != nil {
			w.errs = append(w.errs, err)
		}
		killed = false
	}()
	if <-done {
		w.start()
	}
}

// step makes a pass and has the agents take a step each.
func (w *world) step() {
	w.pass()
	w.c.Agents()
	<-time.After(tick)
	synctest.Wait()
}

func (w *world) steps(n int) {
	for range n {
		w.step()
	}
}

// until steps until something is true.
func (w *world) until(what string, true func() bool) {
	w.t.Helper()
	for range 2000 {
		if true() {
			return
		}
		w.step()
	}
	_, shown, _ := w.c.Rollout(uid)
	w.t.Fatalf("%s did not happen in 2000 steps: %+v; errors %v", what, shown, w.errs)
}

func (w *world) phase() rollout.Phase {
	_, shown, _ := w.c.Rollout(uid)
	return shown.Phase
}

func (w *world) untilPhase(want rollout.Phase) {
	w.t.Helper()
	w.until("phase "+string(want), func() bool { return w.phase() == want })
}

// untilKnown steps until all of n agents have reported.
func (w *world) untilKnown(n int) {
	w.t.Helper()
	w.until("all agents are known", func() bool {
		sh, _ := w.c.Shadow(name(n - 1))
		return sh.Report.Known
	})
}

// behave has the agents from one number to before another behave so.
func (w *world) behave(from, to int, b controllertest.Behavior) {
	for i := from; i < to; i++ {
		w.c.Behave(name(i), b)
	}
}

// sound fails unless all was true that must be, and no pass has had an error.
func (w *world) sound() {
	w.t.Helper()
	for _, b := range w.c.Broken() {
		w.t.Errorf("broken: %s", b)
	}
	for _, err := range w.errs {
		w.t.Errorf("pass: %v", err)
	}
}

// tidy fails unless there is no slot, cordon or mark left.
func (w *world) tidy() {
	w.t.Helper()
	if l := w.c.Ledger(); len(l.Slots) > 0 {
		w.t.Errorf("slots are left: %+v", l.Slots)
	}
	for i := range 100 {
		n := w.c.Node(name(i))
		if _, held := n.Annotations[controller.HeldAnnotation]; held || n.Unschedulable || n.Annotations[controllertest.CordonAnnotation] != "" {
			w.t.Errorf("node %q is not given back: %t, %v", n.Name, n.Unschedulable, n.Annotations)
		}
	}
}

// once fails unless each of n nodes was brought to a revision exactly once.
func (w *world) once(n int, revision string) {
	w.t.Helper()
	if got := w.c.Runs(revision); got != n {
		w.t.Errorf("%d nodes run %q, want %d", got, revision, n)
	}
	for node, times := range w.c.Updates() {
		if times != 1 {
			w.t.Errorf("R-RO-01: %q was applied %d times, want once", node, times)
		}
	}
}

// killer ends the goroutine at one write, before or after it.
func killer(at int, after bool) func(string, bool) {
	n := 0
	return func(_ string, done bool) {
		if done != after {
			return
		}
		if n++; n == at {
			runtime.Goexit()
		}
	}
}

// failing is a node on which a revision falls back.
func failing() controllertest.Behavior {
	return controllertest.Behavior{Fails: func(revision string) protocol.Event {
		if revision == "v2" {
			return protocol.EventFellBack
		}
		return ""
	}}
}
