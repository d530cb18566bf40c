// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
	"github.com/belayproject/belay/drain/maintenance"
	"github.com/belayproject/belay/drain/v1alpha1"
	"github.com/belayproject/belay/internal/backoff"
)

var errCrash = errors.New("the process is dead")

// A power ends a process at its n-th write: before it is carried out, or after.
type power struct {
	mu            sync.Mutex
	writes, crash int
	after, off    bool
}

func (p *power) write(do func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off {
		return errCrash
	}
	p.writes++
	if p.writes != p.crash {
		return do()
	}
	p.off = true
	if p.after {
		_ = do() // its answer is lost
	}
	return errCrash
}

func (p *power) read() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off {
		return errCrash
	}
	return nil
}

// objects is a maintenance.Client in memory. Like the API server it removes an object that is being deleted with its
// last finalizer, and refuses a write to another version.
type objects struct {
	*power
	omu     sync.Mutex
	all     map[string]*v1alpha1.NodeMaintenance
	version int
	changed func(name string)
}

var resource = schema.GroupResource{Group: "belay.dev", Resource: "nodemaintenances"}

func (s *objects) put(o *v1alpha1.NodeMaintenance) {
	s.version++
	o.ResourceVersion = strconv.Itoa(s.version)
	s.all[o.Name] = o
	if o.DeletionTimestamp != nil && len(o.Finalizers) == 0 {
		delete(s.all, o.Name)
	}
	if s.changed != nil {
		go s.changed(o.Name)
	}
}

func (s *objects) Get(_ context.Context, name string) (*v1alpha1.NodeMaintenance, error) {
	if err := s.read(); err != nil {
		return nil, err
	}
	return s.get(name)
}

func (s *objects) get(name string) (*v1alpha1.NodeMaintenance, error) {
	s.omu.Lock()
	defer s.omu.Unlock()
	if o := s.all[name]; o != nil {
		return o.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource, name)
}

func (s *objects) List(context.Context) ([]v1alpha1.NodeMaintenance, error) {
	s.omu.Lock()
	defer s.omu.Unlock()
	var list []v1alpha1.NodeMaintenance
	for _, o := range s.all {
		list = append(list, *o.DeepCopy())
	}
	return list, s.read()
}

func (s *objects) SetFinalizers(_ context.Context, o *v1alpha1.NodeMaintenance, finalizers []string) error {
	return s.write(func() error {
		return s.change(o.Name, func(now *v1alpha1.NodeMaintenance) error {
			if now.ResourceVersion != o.ResourceVersion {
				return apierrors.NewConflict(resource, o.Name, errors.New("it has changed"))
			}
			now.Finalizers = slices.Clone(finalizers)
			return nil
		})
	})
}

func (s *objects) SetStatus(_ context.Context, o *v1alpha1.NodeMaintenance) error {
	return s.write(func() error {
		return s.change(o.Name, func(now *v1alpha1.NodeMaintenance) error {
			now.Status = *o.Status.DeepCopy()
			return nil
		})
	})
}

func (s *objects) Watch(ctx context.Context, changed func(string)) error {
	s.omu.Lock()
	s.changed = changed
	for name := range s.all {
		changed(name)
	}
	s.omu.Unlock()
	<-ctx.Done()
	return nil
}

func (s *objects) change(name string, change func(*v1alpha1.NodeMaintenance) error) error {
	s.omu.Lock()
	defer s.omu.Unlock()
	o := s.all[name]
	if o == nil {
		return apierrors.NewNotFound(resource, name)
	}
	o = o.DeepCopy()
	if err := change(o); err != nil {
		return err
	}
	s.put(o)
	return nil
}

// wired is the Drainer's client, with the same power as the objects.
type wired struct {
	drain.Client
	*power
}

func (w wired) Evict(ctx context.Context, pod drain.PodRef, grace *int64) error {
	return w.write(func() error { return w.Client.Evict(ctx, pod, grace) })
}

func (w wired) PatchNode(ctx context.Context, name string, patch []byte, status bool) (node *corev1.Node, err error) {
	err = w.write(func() error {
		node, err = w.Client.PatchNode(ctx, name, patch, status)
		return err
	})
	return node, err
}

// A world is a cluster with objects, and one process that carries them out.
type world struct {
	*testing.T
	*draintest.Cluster
	objects    *objects
	reconciler *maintenance.Reconciler
	created    int
}

// inWorld runs a test in a bubble, where hours take milliseconds.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, Cluster: draintest.Start(t, draintest.Options{
			CacheLag: 20 * time.Millisecond, BudgetLag: 15 * time.Millisecond, ControllerLag: 30 * time.Millisecond,
			Termination: 3 * time.Second, Startup: time.Second, Readiness: 2 * time.Second,
		})}
		w.objects = &objects{power: &power{}, all: map[string]*v1alpha1.NodeMaintenance{}}
		w.start()
		test(w)
	})
}

// start begins a process; the one before is dead.
func (w *world) start() {
	w.Helper()
	w.objects.mu.Lock()
	w.objects.off, w.objects.crash = false, 0
	w.objects.mu.Unlock()
	drainer, err := drain.New(drain.Options{
		Cache: w.Cluster, Client: wired{w.Cluster, w.objects.power}, Leases: w.Cluster,
	})
	if err != nil {
		w.Fatal(err)
	}
	w.reconciler, err = maintenance.New(maintenance.Options{Client: w.objects, Drainer: drainer, Cache: w.Cluster})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) wait(d time.Duration) { backoff.Sleep(w.Context(), d) }

// nodes makes nodes with a label, and lets the cache see them.
func (w *world) nodes(names ...string) {
	for _, name := range names {
		w.AddNode(name, func(n *corev1.Node) { n.Labels = map[string]string{"rack": "r1"} })
	}
	w.wait(time.Second)
}

func (w *world) create(name string, spec v1alpha1.NodeMaintenanceSpec) {
	w.created++
	if spec.Mode == "" { // as the API server does
		spec.Mode = "Drain"
	}
	o := &v1alpha1.NodeMaintenance{Spec: spec}
	o.Name, o.UID, o.Generation = name, types.UID(name+"-"+strconv.Itoa(w.created)), 1
	w.objects.omu.Lock()
	defer w.objects.omu.Unlock()
	w.objects.put(o)
}

func (w *world) edit(name string, change func(*v1alpha1.NodeMaintenance)) {
	w.Helper()
	err := w.objects.change(name, func(o *v1alpha1.NodeMaintenance) error {
		change(o)
		o.Generation++
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.edit(name, func(o *v1alpha1.NodeMaintenance) {
		now := metav1.Now()
		o.DeletionTimestamp = &now
	})
}

func (w *world) object(name string) *v1alpha1.NodeMaintenance {
	w.Helper()
	o, err := w.objects.get(name)
	if err != nil {
		w.Fatal(err)
	}
	return o
}

func (w *world) gone(name string) bool {
	_, err := w.objects.get(name)
	return apierrors.IsNotFound(err)
}

// pass reconciles all objects once, and those that were.
func (w *world) pass(names ...string) {
	for _, name := range names {
		if _, err := w.reconciler.Reconcile(w.Context(), name); err != nil {
			w.Logf("reconciling %s: %v", name, err)
		}
	}
}

// until reconciles these objects until done, for half an hour at most.
func (w *world) until(what string, done func() bool, names ...string) {
	w.Helper()
	for end := time.Now().Add(30 * time.Minute); !done(); w.wait(300 * time.Millisecond) {
		if time.Now().After(end) {
			for _, name := range names {
				if o, err := w.objects.get(name); err == nil {
					w.Logf("%s: %+v", name, o.Status)
				}
			}
			w.Fatalf("after half an hour: not %s", what)
		}
		w.pass(names...)
	}
}

func (w *world) phase(name string, phase v1alpha1.Phase) func() bool {
	return func() bool { return w.object(name).Status.Phase == phase }
}

func (w *world) closed(node string) bool { return w.LiveNode(node).Spec.Unschedulable }

// checkConditions compares the three conditions, each by a letter: T or F.
func (w *world) checkConditions(name, want string) {
	w.Helper()
	got := ""
	all := w.object(name).Status.Conditions
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		switch c := meta.FindStatusCondition(all, kind); {
		case c == nil:
			got += "-"
		case c.Status == metav1.ConditionTrue:
			got += "T"
		default:
			got += "F"
		}
	}
	if got != want {
		w.Errorf("Ready, Reconciling, Stalled are %s, want %s: %+v", got, want, all)
	}
}

func named(node string) v1alpha1.NodeMaintenanceSpec {
	return v1alpha1.NodeMaintenanceSpec{NodeName: node}
}

func rack() *v1alpha1.NodeSelector {
	return &v1alpha1.NodeSelector{MatchLabels: map[string]v1alpha1.LabelValue{"rack": "r1"}}
}

func noLabels(n *corev1.Node) { n.Labels = nil }
