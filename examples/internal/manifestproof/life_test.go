// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// drained is how many nodes stay in the rollout when it drains.
const drained = 8

// Two controllers and an agent on each node, of which make rights-proof has fifty, with the arguments, accounts, roles and policies of the manifests and nothing else, live through what they are for: no right that they
// have goes unused, and no request of theirs is denied.
func TestFleetUsesItsRightsAlone(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	crashed := f.crashes()
	f.begins("v1")
	f.completes("v1")
	f.leave(crashed)
	f.takenOver("v2")
	f.aborts("v3")
	f.goesBack("v2")
	f.breaks(fatal + "-4")
	f.goesBack("v2")
	f.loses()
	f.collects(crashed)
	f.handsOver("v5")
	f.ends()
	f.audited()
	f.widened(".")
	f.narrowed()
	f.trespassed()
}

// crashes has the agent of a node run in a process of its own, which it kills: its Lease stays. The next agent of the node has its Lease, and takes part.
func (f *fleet) crashes() (node string) {
	f.t.Helper()
	nodes := f.selected()
	node = nodes[len(nodes)-1].Name
	a := f.agents[node]
	a.stops(f.t)
	p := e2e.Start(f.t, self(f.t), append([]string{asAgent}, a.args...)...)
	f.eventually("the agent in a process of its own has its Lease", func() error {
		must(f.t, p.Running())
		return f.heldBy(node)
	})
	p.Kill()
	a.start(f.t)
	return node
}

// heldBy is an error as long as the agent of a node has no Lease.
func (f *fleet) heldBy(node string) error {
	l, err := f.admin.CoordinationV1().Leases(agentNamespace).Get(f.t.Context(), node, metav1.GetOptions{})
	if err == nil && (l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "") {
		err = fmt.Errorf("the Lease is held by nobody")
	}
	return err
}

// selected are the nodes of the rollout, by name.
func (f *fleet) selected() []corev1.Node {
	f.t.Helper()
	nodes, err := f.admin.CoreV1().Nodes().List(f.t.Context(), metav1.ListOptions{LabelSelector: "fleet=yes"})
	must(f.t, err)
	return nodes.Items
}

// revision makes a Revision, and returns how a Rollout names it.
func (f *fleet) revision(name string, class v1alpha1.Class) v1alpha1.PinnedRevision {
	f.t.Helper()
	digest := v1alpha1.OpaqueDigest(name)
	f.create("Revision", name, &v1alpha1.Revision{Spec: v1alpha1.RevisionSpec{Digest: digest, Opaque: name, Class: class}})
	return v1alpha1.PinnedRevision{Name: name, Digest: digest}
}

func (f *fleet) create(kind, name string, object any) {
	f.t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	must(f.t, err)
	delete(fields, "status")
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetName(name)
	_, err = f.api(f.t, u.GroupVersionKind(), "").Create(f.t.Context(), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	must(f.t, err)
}

// begins makes a Rollout of nodes that are not drained, half of them at a time. The first that fails stops it.
func (f *fleet) begins(revision string) {
	f.t.Helper()
	f.create("Rollout", "fleet", &v1alpha1.Rollout{Spec: v1alpha1.RolloutSpec{
		Revision: f.revision(revision, v1alpha1.Class(rollout.NonIntrusive)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "yes"}},
		Caps:       []v1alpha1.Cap{{Scope: v1alpha1.Scope(rollout.Total), Max: intstr.FromString("50%")}},
		RetryAfter: &metav1.Duration{Duration: time.Second},
		Detectors:  []v1alpha1.Detector{{Failures: &v1alpha1.Failures{At: intstr.FromInt32(1)}}},
	}})
}

// turn has the Rollout bring the nodes to another revision.
func (f *fleet) turn(revision string, class v1alpha1.Class) {
	f.t.Helper()
	f.patch(map[string]any{"revision": f.revision(revision, class)})
}

func (f *fleet) patch(spec map[string]any) {
	f.t.Helper()
	body, err := json.Marshal(map[string]any{"spec": spec})
	must(f.t, err)
	_, err = f.objects.Resource(v1alpha1.RolloutsResource).Patch(f.t.Context(), "fleet", types.MergePatchType, body, metav1.PatchOptions{})
	must(f.t, err)
}

// asks has somebody ask for something, and waits until it is carried out.
func (f *fleet) asks(v v1alpha1.Verb) {
	f.t.Helper()
	f.requests++
	v.Request = fmt.Sprintf("%s-%d", v.Do, f.requests)
	f.patch(map[string]any{"verb": nil})
	f.patch(map[string]any{"verb": v})
	f.eventually(string(v.Do)+" is carried out", func() error {
		r := f.rollout()
		if r.Status.HandledRequest != v.Request {
			return fmt.Errorf("the last request that was looked at is %q", r.Status.HandledRequest)
		}
		if r.Status.Refusal != "" {
			return fmt.Errorf("%w: it was refused: %s", e2e.ErrHopeless, r.Status.Refusal)
		}
		return nil
	})
}

// rollout reads the Rollout. A server that does not answer, as on a busy machine, is asked again.
func (f *fleet) rollout() *v1alpha1.Rollout {
	f.t.Helper()
	var r v1alpha1.Rollout
	f.eventually("the Rollout is read", func() error {
		u, err := f.objects.Resource(v1alpha1.RolloutsResource).Get(f.t.Context(), "fleet", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &r)
	})
	return &r
}

// is waits until the rollout is in a phase, about a revision.
func (f *fleet) is(phase rollout.Phase, revision string) {
	f.t.Helper()
	f.eventually("the rollout of "+revision+" is "+string(phase), func() error {
		r := f.rollout()
		if r.Status.Revision == nil || r.Status.Revision.Name != revision || r.Status.ObservedGeneration != r.Generation || r.Status.Phase != v1alpha1.RolloutPhase(phase) {
			return fmt.Errorf("that of %v is %s: %s", r.Status.Revision, r.Status.Phase, r.Status.Message)
		}
		return nil
	})
}

// completes waits until the rollout is over: the nodes that it selects run the revision.
func (f *fleet) completes(revision string) {
	f.t.Helper()
	f.is(rollout.Completed, revision)
	for _, n := range f.selected() {
		if o, _ := f.agents[n.Name].box.Observe(f.t.Context()); o.Current.Name != revision {
			f.t.Errorf("node %q runs %q, want %q", n.Name, o.Current.Name, revision)
		}
	}
}

// leave takes most nodes out of the rollout: their shadows are removed, by who makes them. The agent of one of them is killed for good.
func (f *fleet) leave(killed string) {
	f.t.Helper()
	nodes := f.selected()
	for _, n := range nodes[drained:] {
		f.label(n.Name, "null")
	}
	f.eventually("the shadows of nodes that nobody selects are removed", func() error { return f.shadows(drained) })
	a := f.agents[killed]
	a.stops(f.t)
	p := e2e.Start(f.t, self(f.t), append([]string{asAgent}, a.args...)...)
	f.eventually("the agent that is to be killed has its Lease", func() error {
		must(f.t, p.Running())
		return f.heldBy(killed)
	})
	p.Kill()
}

// shadows is an error unless there are that many.
func (f *fleet) shadows(want int) error {
	left, err := f.objects.Resource(v1alpha1.NodeShadowsResource).List(f.t.Context(), metav1.ListOptions{})
	if err == nil && len(left.Items) != want {
		err = fmt.Errorf("there are %d, want %d", len(left.Items), want)
	}
	return err
}

// leader is the replica that carries out rollouts, once there is one, and the other.
func (f *fleet) leader() (leads, waits *replica) {
	f.t.Helper()
	f.eventually("one replica leads", func() error {
		var err error
		for i, r := range f.replicas {
			if err = r.says(`belay_leader{name="rollout-default"} 1`); err == nil {
				leads, waits = r, f.replicas[1-i]
				return nil
			}
		}
		return err
	})
	return leads, waits
}

// takenOver has nodes drained, and the leader killed in the middle: the other replica goes on.
func (f *fleet) takenOver(revision string) {
	f.t.Helper()
	leads, waits := f.leader()
	f.turn(revision, "")
	f.eventually("nodes are drained", func() error { return f.evicted(1) })
	leads.process.Kill()
	f.eventually("the other replica leads", func() error { return waits.says(`belay_leader{name="rollout-default"} 1`) })
	leads.start()
	f.completes(revision)
	f.eventually("both show the page", func() error {
		for _, r := range f.replicas {
			story, err := e2e.Get(f.t.Context(), "http://"+r.page+"/node?name="+f.selected()[0].Name)
			if err == nil && !strings.Contains(story, `"rollout":"fleet"`) {
				err = fmt.Errorf("the story is %s", story)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// evicted is an error unless that many evictions are in the log.
func (f *fleet) evicted(want int) error {
	if n := strings.Count(read(f.t, f.env.AuditLog()), `"subresource":"eviction"`); n < want {
		return fmt.Errorf("there are %d evictions", n)
	}
	return nil
}

// aborts stops a rollout that has begun.
func (f *fleet) aborts(revision string) {
	f.t.Helper()
	f.turn(revision, "")
	f.eventually("the rollout of "+revision+" has begun", func() error {
		r := f.rollout()
		if r.Status.Revision == nil || r.Status.Revision.Name != revision || r.Status.Counts == nil || r.Status.Counts.InFlight == 0 {
			return fmt.Errorf("it has %+v", r.Status.Counts)
		}
		return nil
	})
	f.asks(v1alpha1.Verb{Do: v1alpha1.Do(rollout.Abort)})
	f.is(rollout.Aborted, revision)
	f.asks(v1alpha1.Verb{Do: v1alpha1.Do(rollout.Resume)})
}

// loses has a node leave the cluster, with its machine: its shadow is buried.
func (f *fleet) loses() {
	f.t.Helper()
	node := f.selected()[0].Name
	f.agents[node].stops(f.t)
	delete(f.agents, node)
	must(f.t, f.admin.CoreV1().Nodes().Delete(f.t.Context(), node, metav1.DeleteOptions{}))
	f.eventually("the shadow of a Node that is gone is removed", func() error { return f.shadows(drained - 1) })
}

// collects waits until what is left of the agent that was killed is deleted. Then its node gets one again, and all are counted.
func (f *fleet) collects(killed string) {
	f.t.Helper()
	f.eventually("the Lease of an agent that is gone is collected", func() error {
		_, err := f.admin.CoordinationV1().Leases(agentNamespace).Get(f.t.Context(), killed, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
	f.agents[killed].start(f.t)
	f.eventually("the agents are counted", func() error {
		var err error
		for _, r := range f.replicas {
			if err = r.says(fmt.Sprintf(`belay_agents{state="Alive"} %d`, f.nodes-1)); err == nil {
				return nil
			}
		}
		return err
	})
}

// handsOver has the switch turn everything off and on again, and the leader asked to stop: the other replica carries out what was asked for meanwhile.
func (f *fleet) handsOver(revision string) {
	f.t.Helper()
	maps := f.admin.CoreV1().ConfigMaps(systemNamespace)
	_, err := maps.Create(f.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: controllerAccount}, Data: map[string]string{"disabled": "true"}}, metav1.CreateOptions{})
	must(f.t, err)
	leads, waits := f.leader()
	f.turn(revision, v1alpha1.Class(rollout.NonIntrusive))
	f.eventually("the switch holds everything", func() error {
		return leads.says(fmt.Sprintf(`belay_rollout_waiting_nodes{domain="default",reason="Gate",rollout="fleet"} %d`, drained-1))
	})
	leads.stops()
	must(f.t, maps.Delete(f.t.Context(), controllerAccount, metav1.DeleteOptions{}))
	f.completes(revision)
	f.eventually("the other replica leads", func() error { return waits.says(`belay_leader{name="rollout-default"} 1`) })
	f.replicas = []*replica{waits}
}

// ends deletes the Rollout, after which nothing is left of it, and stops everybody.
func (f *fleet) ends() {
	f.t.Helper()
	must(f.t, f.objects.Resource(v1alpha1.RolloutsResource).Delete(f.t.Context(), "fleet", metav1.DeleteOptions{}))
	f.eventually("nothing is left of the Rollout", func() error {
		_, err := f.objects.Resource(v1alpha1.RolloutsResource).Get(f.t.Context(), "fleet", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return f.shadows(0)
	})
	for _, a := range f.agents {
		a.stops(f.t)
	}
	for _, r := range f.replicas {
		r.stops()
	}
}

// audited compares the log with the roles.
func (f *fleet) audited() {
	f.t.Helper()
	f.log = read(f.t, f.env.AuditLog())
	a := newAudit(f.t, build(f.t, "."))
	a.read(events(f.t, f.log))
	for _, line := range a.denied {
		f.t.Errorf("denied: %s", line)
	}
	for _, line := range a.left() {
		f.t.Errorf("given and not used: %s", line)
	}
	if a.requests[controllerUser] < f.nodes || a.requests[agentUser] < 5*f.nodes {
		f.t.Errorf("the audit log has %v: nothing is shown", a.requests)
	}
	for request := range denials() {
		if a.probes[request] < f.nodes {
			f.t.Errorf("%s: it was denied %d times, want that of each agent", request, a.probes[request])
		}
	}
	f.t.Logf("%d nodes, %v requests", f.nodes, a.requests)
}
