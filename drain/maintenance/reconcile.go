// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/v1alpha1"
	"github.com/belayproject/belay/internal/option"
)

const (
	// lookAgain is the longest time between two passes over an object: labels of Nodes change without a call.
	lookAgain = time.Minute
	// soon is how long a pass waits for what it has just begun.
	soon = time.Second
)

// Options are the parts of a [Reconciler]. All but Now are required.
type Options struct {
	Client Client
	// Drainer has no Options.Requests for the nodes of objects: the Reconciler gives it requests of its own. For mode
	// Hold it needs Options.Leases.
	Drainer *drain.Drainer
	// Cache is the one that the Drainer has.
	Cache drain.Cache
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// A Reconciler carries out NodeMaintenance objects. Make one with [New].
type Reconciler struct {
	o  Options
	mu sync.Mutex
	// known is what the last pass over each object has found, by name: it can be lost.
	known map[string]*knowledge
}

// A knowledge is what a process remembers of an object between two passes.
type knowledge struct {
	uid     types.UID
	spec    v1alpha1.NodeMaintenanceSpec
	last    *drain.SetStatus
	plans   map[string]drain.NodePlan
	planned time.Time
	of      int64 // generation that the plans are of
}

// New checks the options and returns a Reconciler. The error names each option that is missing.
func New(o Options) (*Reconciler, error) {
	check := option.For("drain/maintenance.New", nil)
	check.Require("Options.Client", o.Client, "see NewClient")
	check.Require("Options.Drainer", o.Drainer, "see drain.New")
	check.Require("Options.Cache", o.Cache, "see drain/kube.NewCache")
	if err := check.Err(); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Reconciler{o: o, known: map[string]*knowledge{}}, nil
}

// Reconcile is one bounded pass over the object of that name. requeueAfter is when to call again at the latest; zero
// means that only a change of the object can matter. With an error, call again after a back-off. An object that does
// not exist is no error: nodes that an earlier one has left are given back.
func (r *Reconciler) Reconcile(ctx context.Context, name string) (requeueAfter time.Duration, err error) {
	if r == nil || r.known == nil {
		return 0, option.NotMade("drain/maintenance.Reconciler.Reconcile", "maintenance.New")
	}
	o, err := r.o.Client.Get(ctx, name)
	var unreadable *decodeError
	switch {
	case apierrors.IsNotFound(err):
		r.forgetObject(ctx, name)
		return r.releaseOrphans(ctx)
	case errors.As(err, &unreadable):
		o = unreadable.object
	case err != nil:
		return 0, fmt.Errorf("reading NodeMaintenance %q: %w", name, err)
	case o == nil:
		return 0, fmt.Errorf("reading NodeMaintenance %q: the Client returned neither an object nor an error", name)
	}
	if err := r.o.Cache.Check(); err != nil {
		return soon, fmt.Errorf("reconciling NodeMaintenance %q: %w", name, err)
	}
	if o.DeletionTimestamp != nil {
		return r.releaseObject(ctx, o)
	}
	d := decideWork(o, r.o.Cache.Nodes(), r.o.Now())
	if unreadable != nil {
		d = decision{problem: fmt.Errorf("spec cannot be read: %w", unreadable.err)}
	}
	return r.carryOut(ctx, o, d)
}

// carryOut does what was decided, and writes the status.
func (r *Reconciler) carryOut(ctx context.Context, o *v1alpha1.NodeMaintenance, d decision) (time.Duration, error) {
	if d.set != nil && !slices.Contains(o.Finalizers, v1alpha1.Finalizer) { // before the first write to a node
		finalizers := append(slices.Clone(o.Finalizers), v1alpha1.Finalizer)
		if err := r.o.Client.SetFinalizers(ctx, o, finalizers); err != nil {
			return 0, fmt.Errorf("setting the finalizer of NodeMaintenance %q: %w", o.Name, err)
		}
		return soon, nil // the next pass reads the version with it, and whether the object is being deleted
	}
	k := r.recallObject(o)
	after := untilNext(o, d, r.o.Now())
	var errs []error
	seen := observation{nodes: map[string]drain.Status{}}
	if d.set != nil {
		d.set.Last = withoutFailed(k.last)
		st, again, err := r.o.Drainer.ReconcileSet(ctx, *d.set)
		after, errs = earlierOf(after, again), append(errs, err)
		if errors.Is(err, drain.ErrOption) { // what this process cannot do, whatever the cluster is like
			d.problem = err
		}
		if r.forgetReplaced(ctx, o, &st) {
			after = earlierOf(after, soon)
		}
		for _, n := range st.Nodes {
			seen.nodes[n.Node] = n
		}
		r.changeKnowledge(o, func(k *knowledge) { k.last = &st })
	}
	if len(d.strays) > 0 {
		left, again, err := r.giveBack(ctx, o.UID, d.strays)
		errs = append(errs, err)
		if len(left) > 0 {
			after = earlierOf(after, max(again, soon))
		}
	}
	if ctx.Err() == nil { // an end of the process says nothing of the nodes
		seen.failure = errors.Join(errs...)
	}
	seen.plans = r.planPreview(ctx, o, d, seen.nodes)
	errs = append(errs, r.writeStatus(ctx, o, statusOf(o, d, seen, r.o.Now())))
	return after, errors.Join(errs...)
}

// untilNext is how long nothing changes by itself, as far as the object says.
func untilNext(o *v1alpha1.NodeMaintenance, d decision, now time.Time) time.Duration {
	after := lookAgain
	for _, at := range []time.Time{d.opens, timeOf(o.Spec.Deadline)} {
		if left := at.Sub(now); left > 0 {
			after = earlierOf(after, left)
		}
	}
	return after
}

// withoutFailed leaves out the nodes that have failed: package drain would not look at them again, and their cause
// may be over, as that of a Node which was not there.
func withoutFailed(last *drain.SetStatus) *drain.SetStatus {
	if last == nil {
		return nil
	}
	out := *last
	out.Nodes = slices.DeleteFunc(slices.Clone(last.Nodes), func(n drain.Status) bool {
		return n.Phase == drain.Failed || n.Reason == drain.NodeNotFound
	})
	return &out
}

// forgetReplaced forgets what is known of an object's nodes where one was created anew under its name: the new one is
// begun like any other. It reports whether there is one.
func (r *Reconciler) forgetReplaced(ctx context.Context, o *v1alpha1.NodeMaintenance, st *drain.SetStatus) bool {
	isNew := func(n drain.Status) bool { return n.Phase == drain.Failed && n.Reason == drain.NodeReplaced }
	if !slices.ContainsFunc(st.Nodes, isNew) {
		return false
	}
	if err := r.o.Drainer.Forget(ctx, holderOf(o.UID)); err != nil {
		klog.FromContext(ctx).Error(err, "Forgetting a Node that was replaced", "nodeMaintenance", o.Name)
	}
	st.Nodes = slices.DeleteFunc(st.Nodes, isNew)
	return true
}

// planPreview plans the drain of nodes that were not begun, at most once a minute. Without a plan the status has no
// numbers of them.
func (r *Reconciler) planPreview(
	ctx context.Context, o *v1alpha1.NodeMaintenance, d decision, nodes map[string]drain.Status,
) map[string]drain.NodePlan {
	if d.problem != nil || drain.Mode(o.Spec.Mode) != drain.Drain {
		return nil
	}
	k := r.recallObject(o)
	if k.plans != nil && k.of == o.Generation && r.o.Now().Sub(k.planned) < lookAgain {
		return k.plans
	}
	var names []string
	for _, name := range d.targets {
		if s, ok := nodes[name]; (!ok || !wasBegun(s)) && r.o.Cache.Node(name) != nil {
			names = append(names, name)
		}
	}
	names = names[:min(len(names), v1alpha1.MaxNodes)]
	if len(names) == 0 {
		return nil
	}
	result, err := r.o.Drainer.Plan(ctx, d.policy, names...)
	if err != nil {
		klog.FromContext(ctx).V(1).Info("No preview of a drain", "nodeMaintenance", o.Name, "why", err.Error())
		return k.plans
	}
	plans := make(map[string]drain.NodePlan, len(result.Nodes))
	for _, n := range result.Nodes {
		plans[n.Node] = n
	}
	r.changeKnowledge(o, func(k *knowledge) { k.plans, k.planned, k.of = plans, r.o.Now(), o.Generation })
	return plans
}

// releaseObject gives all nodes of an object that is being deleted back, and then takes the finalizer off. It never
// enters a node, also where the finalizer has gone and another one keeps the object.
func (r *Reconciler) releaseObject(ctx context.Context, o *v1alpha1.NodeMaintenance) (time.Duration, error) {
	i := slices.Index(o.Finalizers, v1alpha1.Finalizer)
	if i < 0 {
		return 0, nil
	}
	d := decideWork(o, r.o.Cache.Nodes(), r.o.Now())
	left, after, err := r.giveBack(ctx, o.UID, d.strays)
	if err != nil || len(left) > 0 {
		st := releasingStatus(o, left, r.o.Now())
		return max(after, soon), errors.Join(err, r.writeStatus(ctx, o, st))
	}
	err = r.o.Client.SetFinalizers(ctx, o, slices.Delete(slices.Clone(o.Finalizers), i, i+1))
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("taking the finalizer off NodeMaintenance %q: %w", o.Name, err)
	}
	r.forgetObject(ctx, o.Name)
	return 0, nil
}

// giveBack releases nodes and returns those on which something of the holder may be left.
func (r *Reconciler) giveBack(
	ctx context.Context, uid types.UID, names []string,
) (left []drain.Status, after time.Duration, err error) {
	if len(names) == 0 {
		return nil, 0, nil
	}
	st, after, err := r.o.Drainer.ReconcileSet(ctx, releaseOf(uid, names))
	left = slices.DeleteFunc(st.Nodes, func(n drain.Status) bool { return n.Phase == drain.Released })
	return left, after, err
}

// releaseOrphans gives back nodes whose object does not exist: its finalizer was removed by hand.
func (r *Reconciler) releaseOrphans(ctx context.Context) (after time.Duration, err error) {
	held := map[types.UID][]string{}
	for _, node := range r.o.Cache.Nodes() {
		for _, uid := range holdersOn(node) {
			held[uid] = append(held[uid], node.Name)
		}
	}
	if len(held) == 0 {
		return 0, nil
	}
	objects, err := r.o.Client.List(ctx)
	if err != nil {
		return 0, fmt.Errorf("listing NodeMaintenances: %w", err)
	}
	for i := range objects {
		delete(held, objects[i].UID)
	}
	var errs []error
	for uid, names := range held {
		klog.FromContext(ctx).Info("Giving back nodes of a NodeMaintenance that does not exist", "uid", uid, "nodes", names)
		left, again, err := r.giveBack(ctx, uid, names)
		errs = append(errs, err)
		if len(left) > 0 {
			after = earlierOf(after, max(again, soon))
		}
	}
	return after, errors.Join(errs...)
}

// holdersOn are the UIDs of the objects that a Node's mark names.
func holdersOn(node *corev1.Node) (uids []types.UID) {
	holders, err := drain.HoldersOf(node)
	if err != nil {
		return nil // package drain says so where the node is meant
	}
	for _, h := range holders {
		if uid, ours := strings.CutPrefix(h, holderPrefix); ours {
			uids = append(uids, types.UID(uid))
		}
	}
	return uids
}

// writeStatus writes a status that is another one than the object has.
func (r *Reconciler) writeStatus(
	ctx context.Context, o *v1alpha1.NodeMaintenance, st v1alpha1.NodeMaintenanceStatus,
) error {
	if equality.Semantic.DeepEqual(o.Status, st) {
		return nil
	}
	next := o.DeepCopy()
	next.Status = st
	if err := r.o.Client.SetStatus(ctx, next); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of NodeMaintenance %q: %w", o.Name, err)
	}
	return nil
}

// recallObject returns what is known of an object, and notes what it wants. That of an earlier object of its name is
// dropped.
func (r *Reconciler) recallObject(o *v1alpha1.NodeMaintenance) knowledge {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.known[o.Name]
	if k == nil || k.uid != o.UID {
		k = &knowledge{uid: o.UID}
		r.known[o.Name] = k
	}
	k.spec = *o.Spec.DeepCopy()
	return *k
}

// changeKnowledge changes what is known of an object.
func (r *Reconciler) changeKnowledge(o *v1alpha1.NodeMaintenance, change func(*knowledge)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.known[o.Name]; k != nil && k.uid == o.UID {
		change(k)
	}
}

// forgetObject drops what is known of an object that is gone, here and in the Drainer.
func (r *Reconciler) forgetObject(ctx context.Context, name string) {
	r.mu.Lock()
	k := r.known[name]
	delete(r.known, name)
	r.mu.Unlock()
	if k == nil {
		return
	}
	if err := r.o.Drainer.Forget(ctx, holderOf(k.uid)); err != nil {
		klog.FromContext(ctx).Error(err, "Forgetting the drains of a NodeMaintenance", "nodeMaintenance", name)
	}
}

// earlierOf is the earlier of two wishes for the next pass; zero is no wish.
func earlierOf(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
