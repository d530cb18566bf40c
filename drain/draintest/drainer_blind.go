// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
)

// readCases spoil what is read from the server itself.
func readCases() []drainerCase {
	var cases []drainerCase
	for _, m := range append(troubles(), silences()...) {
		cases = append(cases,
			drainerCase{"the last read meets " + m.name + ": the node is drained in the end", func(y *yard) {
				y.survives(y.sparse(), m.on(y, ListPods, 1))
			}},
			drainerCase{"a cordon of which nobody has heard is taken back, though the read of the node meets " + m.name,
				blind(func(y *yard, b blindBed) { lostCordon(y, b, m.on(y, GetNode, 1)) })})
	}
	return append(cases, drainerCase{"where the node cannot be read consistently it does not count as drained", func(y *yard) {
		node := y.sparse()
		y.Plot().Faults(Always(ListPods, Unavailable()))
		r := y.request(node, drain.Drain)
		reachSettling(y, &r)
		if st := y.pass(r, y.Vigil()); st.Phase == drain.Drained {
			y.errorf("got %+v, want it not drained", st)
		}
		if len(y.Plot().Log(ListPods)) == 0 {
			y.errorf("got no read in %v, want the server asked", y.Vigil())
		}
	}})
}

// lostCordon releases a node of which the cordon timed out after the write, while the cache shows nothing of it. R-DR-09.
func lostCordon(y *yard, b blindBed, f Fault) {
	node := y.Node(y.t, "a")
	r := y.request(node, drain.Cordon)
	y.Plot().Faults(Always(PatchNode, TimeoutAfter(y.Silence())))
	y.eventually("the cordon on the server", func() error {
		b.DropWatch()
		if st, _, err := y.drainer.ReconcileRequest(y.t.Context(), r); err == nil || st.Phase == drain.Cordoned {
			y.errorf("got %+v and error %v, want the lost answer", st, err)
		}
		if y.writes(node) > 0 {
			return nil
		}
		b.RestoreWatch()
		return errors.New("the node had changed")
	})
	y.held(node, r)
	y.Plot().ClearFaults()
	y.Plot().Faults(f)
	r.Mode = drain.Release
	st := y.reconcile(r, func(st drain.Status) bool { return st.Phase == drain.Released || len(y.Plot().Log(GetNode)) > 0 })
	b.RestoreWatch()
	if st.Phase != drain.Released { // the node may have changed again
		y.release(r)
	}
	y.clean(node)
	if len(y.Plot().Log(GetNode)) == 0 {
		y.errorf("got no read of the node, want the server asked")
	}
}

// blindCases take the watch away. They say nothing where the bed has none to lose.
func blindCases() []drainerCase {
	return []drainerCase{
		{"a dry run over a cache that does not show a pod of the server is an error", blind(planOverBlindCache)},
		{"a watch that is lost in the middle leads to no wrong word, and the drain goes on when it is back", blind(watchLost)},
		{"a node does not count as drained while the server has a pod on it that the cache does not show", blind(unseenPod)},
		{"a pod that came back elsewhere under its name while the cache shows the old one is not evicted", blind(namesake)},
	}
}

func blind(test func(*yard, blindBed)) func(*yard) {
	return func(y *yard) {
		if b, ok := y.Bed.(blindBed); ok {
			test(y, b)
		}
	}
}

// watchLost freezes the cache at the second eviction.
func watchLost(y *yard, b blindBed) {
	node := y.populated()
	y.Plot().Faults(On(Evict, 2, WatchDropped()))
	r := y.request(node, drain.Drain)
	st := y.pass(r, y.Vigil())
	if st.Phase == drain.Drained && len(y.ours(node)) > 0 {
		y.errorf("while the cache was frozen: got Drained with %d pods on the node", len(y.ours(node)))
	}
	if n, most := len(y.Plot().Log(Evict)), 6+int(y.Vigil().Minutes()*2*6); n > most {
		y.errorf("evictions in %v: got %d, want at most %d: 2 a minute for each pod", y.Vigil(), n, most)
	}
	b.RestoreWatch()
	y.reconcile(r, phase(drain.Drained))
	y.arrived(node, r)
}

// planOverBlindCache binds a pod to a node while the cache is frozen. A plan without it would say that the node is empty.
func planOverBlindCache(y *yard, b blindBed) {
	node := y.Node(y.t, "a")
	plan, err := y.drainer.Plan(y.t.Context(), drain.Policy{}, node)
	if err != nil || len(plan.Nodes) != 1 || len(plan.Nodes[0].Pods) != 0 {
		y.errorf("before: got %+v and error %v, want a plan without pods", plan, err)
	}
	b.DropWatch()
	y.Pod(y.t, NewPod(y.Namespace(), "unseen", node))
	plan, err = y.drainer.Plan(y.t.Context(), drain.Policy{}, node)
	_, err2 := y.drainer.Preflight(y.t.Context(), drain.Policy{}, node)
	for _, err := range []error{err, err2} {
		var blind *drain.CacheError
		if !errors.As(err, &blind) || !strings.Contains(err.Error(), "unseen") {
			y.errorf("got %+v and error %v, want a CacheError that names the pod", plan, err)
		}
	}
	b.RestoreWatch()
	y.eventually("a plan with the pod", func() error {
		plan, err := y.drainer.Plan(y.t.Context(), drain.Policy{}, node)
		if err == nil && len(plan.Nodes[0].Pods) != 1 {
			err = fmt.Errorf("got %+v, want one pod", plan.Nodes[0])
		}
		return err
	})
}

// ours are the names of the test's pods on the node.
func (y *yard) ours(node string) []string {
	var names []string
	for _, pod := range y.GetPods(y.t, node) {
		if pod.Namespace == y.Namespace() {
			names = append(names, pod.Name)
		}
	}
	return names
}

// reachSettling brings a drain to where its node is empty and watched for late pods, however long its pods took to
// leave. The request has the default settle time afterwards.
func reachSettling(y *yard, r *drain.Request) {
	y.t.Helper()
	hour := time.Hour
	r.Policy.Settle = &hour
	y.reconcile(*r, phase(drain.Settling))
	r.Policy.Settle = nil
}

// unseenPod binds a pod to a node that is settling, while the cache is frozen.
func unseenPod(y *yard, b blindBed) {
	node := y.populated()
	r := y.request(node, drain.Drain)
	r.Policy.Unmanaged = drain.EvictPods
	reachSettling(y, &r)
	b.DropWatch()
	y.Pod(y.t, NewPod(y.Namespace(), "unseen", node))
	if st := y.pass(r, min(time.Minute, y.Vigil())); st.Phase == drain.Drained {
		y.errorf("got %+v with a pod on the node, want it not drained", st)
	}
	b.RestoreWatch()
	y.reconcile(r, phase(drain.Drained))
	y.arrived(node, r)
}

// namesake has a pod of a StatefulSet come back on another node while the cache shows the old one. Only the UID tells them apart. The log
// alone counts: a kubelet that is played may end the new pod too, for its name.
func namesake(y *yard, b blindBed) {
	node := y.Node(y.t, "a")
	y.App(y.t, StatefulSet, "db", 1)
	other := y.Node(y.t, "b")
	old := y.onNode(node, "db-0").UID
	lost := On(Evict, 1, TimeoutBefore(y.Silence()))
	lost.dropWatch = true
	y.Plot().Faults(lost)
	r := y.request(node, drain.Drain)
	y.reconcile(r, blocked(drain.NoAnswer))
	y.DeletePod(y.t, "db-0")
	y.comesBack(other)
	y.reconcile(r, func(drain.Status) bool { return len(y.Plot().Log(Evict)) > 1 })
	for _, call := range y.Plot().Log(Evict) {
		if call.UID != old || call.Wrote {
			y.errorf("got %v, want the UID %s, and the server to refuse", call, old)
		}
	}
	b.RestoreWatch()
	y.reconcile(r, phase(drain.Drained))
	y.noError()
	y.arrived(node, r)
}

// comesBack waits until db-0 is ready on the node.
func (y *yard) comesBack(node string) {
	y.t.Helper()
	y.eventually("db-0 on the other node", func() error {
		if pod := y.onNode(node, "db-0"); pod == nil || !isReady(pod) {
			return errors.New("not yet")
		}
		return nil
	})
}

// onNode returns the pod of the test as the server has it on the node, or nil.
func (y *yard) onNode(node, name string) *corev1.Pod {
	for _, pod := range y.GetPods(y.t, node) {
		if pod.Namespace == y.Namespace() && pod.Name == name {
			return pod
		}
	}
	return nil
}
