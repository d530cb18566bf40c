// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/belayproject/belay/drain"
	drainkube "github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/machine/controller"
	machinekube "github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/machinetest"
	rolloutkube "github.com/belayproject/belay/rollout/kube"
)

// wantSays checks that an error says each of these.
func wantSays(t *testing.T, what string, err error, says ...string) {
	t.Helper()
	for _, text := range says {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want an error that says %q", what, err, text)
		}
	}
}

// belayGoroutines counts those in which code of belay runs, besides this test.
func belayGoroutines() int {
	stacks := make([]byte, 16<<20)
	n := 0
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		of := strings.ReplaceAll(stack, "belay/examples/manager.Test", "")
		of = strings.ReplaceAll(of, "belay/internal/testenv", "")
		if strings.Contains(of, "belayproject/belay/") && !strings.Contains(of, "testing.tRunner") {
			n++
		}
	}
	return n
}

// wantNoGoroutine waits until no more goroutines of belay run than before.
func (b bed) wantNoGoroutine(before int) {
	b.Helper()
	b.eventually("the goroutines to end", func(context.Context) error {
		if n := belayGoroutines(); n > before {
			return fmt.Errorf("%d goroutines run code of belay, %d before", n, before)
		}
		return nil
	})
}

// optionOf is the option that an error of a part names. The InformerErrors of rollouts and machines are one type.
func optionOf(err error) string {
	var ofDrain *drainkube.InformerError
	var ofOthers *rolloutkube.InformerError
	switch {
	case errors.As(err, &ofDrain):
		return ofDrain.Option
	case errors.As(err, &ofOthers):
		return ofOthers.Option
	}
	return ""
}

// TestCachesThatCannotBeUsed gives belay the informers of a manager whose cache drops a field or selects too little.
// The manager ends by itself, with a typed error that names the option and says what would be right.
func TestCachesThatCannotBeUsed(t *testing.T) {
	b := newBed(t)
	namespace := b.env.Namespace(t)
	b.node("fault-"+namespace, nil)
	_, err := b.core.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec: corev1.PodSpec{
			NodeName: "fault-" + namespace, Containers: []corev1.Container{{Name: "app", Image: "app"}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}, metav1.CreateOptions{})
	b.must(err)
	dropTolerations := func(obj any) (any, error) {
		if p, ok := obj.(*corev1.Pod); ok {
			p.Spec.Tolerations = nil
		}
		return obj, nil
	}
	some := labels.SelectorFromSet(labels.Set{"no-node": "has-this"})
	for name, c := range map[string]struct {
		of     client.Object
		by     cache.ByObject
		option string
		is     error
		says   string
	}{
		"transform": {&corev1.Pod{}, cache.ByObject{Transform: dropTolerations}, "Informers.Pods",
			drainkube.ErrFieldMissing, "keep what drain/kube.Transform keeps"},
		"selector": {&corev1.Node{}, cache.ByObject{Label: some}, "Informers.Nodes",
			nil, "without a label or field selector"},
		"namespace": {&corev1.Pod{}, cache.ByObject{Namespaces: map[string]cache.Config{"default": {}}},
			"Informers.Pods", nil, "give one that watches the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			b := bed{t, b.env, b.core, b.objects}
			before := belayGoroutines()
			start := func(add func(ctx context.Context, mgr ctrl.Manager) error) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				mgr := b.newManager(b.user("fault-"+name), func(o *ctrl.Options) {
					o.Cache.ByObject = map[client.Object]cache.ByObject{c.of: c.by}
				})
				err := add(ctx, mgr)
				if err == nil {
					err = mgr.Start(ctx)
				}
				if ctx.Err() != nil {
					t.Error("the manager went on for a minute, want an error within a second")
				}
				return err
			}
			p, _ := newParts()
			err := start(func(ctx context.Context, mgr ctrl.Manager) error {
				_, err := addDrain(ctx, mgr, p.drain)
				return err
			})
			var typed *drainkube.InformerError
			if !errors.As(err, &typed) || typed.Option != c.option || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("a drain alone: got %v, want an InformerError of %s that is %q", err, c.option, c.is)
			}
			wantSays(t, "a drain alone", err, c.option, c.says)
			// Of all three, the first that compares says so. Machines have Nodes alone, by the option Loop.Nodes.
			err = start(p.addTo)
			if option := optionOf(err); option != c.option && (option != "Loop.Nodes" || c.option != "Informers.Nodes") {
				t.Errorf("all three: got %v, want an InformerError of %s", err, c.option)
			}
			b.wantNoGoroutine(before)
		})
	}
}

// informersOf are those of a manager's cache, which need not run.
func (b bed) informersOf(mgr ctrl.Manager) (drainkube.Informers, rolloutkube.Informers) {
	b.Helper()
	get := func(of client.Object) cache.Informer {
		i, err := mgr.GetCache().GetInformer(b.Context(), of)
		b.must(err)
		return i
	}
	nodes, pods, budgets := get(&corev1.Node{}), get(&corev1.Pod{}), get(&policyv1.PodDisruptionBudget{})
	return drainkube.Informers{Pods: pods, Nodes: nodes, Budgets: budgets}, rolloutkube.Informers{
		Nodes: nodes, Pods: pods, Deployments: get(&appsv1.Deployment{}), StatefulSets: get(&appsv1.StatefulSet{}),
		DaemonSets: get(&appsv1.DaemonSet{}),
	}
}

// loop is the controller of machines over an informer of Nodes.
func (b bed) loop(nodes machinekube.Informer) machinekube.Loop {
	b.Helper()
	of, err := machinekube.NewNodes(b.core, nodes, nil)
	b.must(err)
	machines, err := machinekube.NewMachines(b.objects, b.env.Namespace(b))
	b.must(err)
	c, err := controller.New(controller.Options{
		Cluster: "faults", Machines: machines, Nodes: of, Provider: &machinetest.Memory{}, Undrained: true,
	})
	b.must(err)
	return machinekube.Loop{Controller: c, Machines: machines, Nodes: of}
}

// TestManagerThatDoesNotRun uses the informers of a manager that was not started, and of one that stops while the parts
// go on.
func TestManagerThatDoesNotRun(t *testing.T) {
	b := newBed(t)
	for name, runs := range map[string]bool{"not started": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			b := bed{t, b.env, b.core, b.objects}
			before := belayGoroutines()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			mgr := b.newManager(b.user("idle"))
			forDrain, forRollout := b.informersOf(mgr)
			d, err := drainkube.Open(ctx, b.env.Config(), drainkube.OpenOptions{Informers: forDrain, NoWait: true})
			b.must(err)
			remedy, stop := "is not started: start", func() {}
			if runs {
				remedy, stop = "has stopped", b.start(mgr)
				b.must(d.Cache.WaitForSync(ctx))
			} else if err := d.Cache.WaitForSync(ctx); !errors.Is(err, drainkube.ErrInformerNotStarted) {
				t.Errorf("drain: got %v, want ErrInformerNotStarted", err)
			} else {
				wantSays(t, "drain", err, "Informers.Nodes", "not started: start")
			}
			rollouts, machines, running := b.runParts(ctx, forRollout)
			if runs {
				running()
				if n := belayGoroutines(); n <= before {
					t.Errorf("%d goroutines run code of belay, %d before: this counts nothing", n, before)
				}
				stop()
			}
			var blind *drain.CacheError
			if _, err := d.Plan(ctx, drain.Policy{}, "no-node"); !errors.As(err, &blind) {
				t.Errorf("a dry run: got %v, want a CacheError", err)
			}
			wantEnd(t, "rollouts", <-rollouts, "Informers.", remedy)
			wantEnd(t, "machines", <-machines, "Loop.Nodes", remedy)
			if ctx.Err() != nil {
				t.Error("the parts went on for a minute, want errors within a second")
			}
			d.Close()
			b.wantNoGoroutine(before)
		})
	}
}

// runParts runs the controllers of rollouts and machines over the informers of a manager. They send why they have
// ended; wait returns when both work.
func (b bed) runParts(
	ctx context.Context, in rolloutkube.Informers,
) (rollouts, machines <-chan error, wait func()) {
	b.Helper()
	ofRollouts, ofMachines, leads := make(chan error, 1), make(chan error, 1), make(chan struct{})
	go func() {
		ofRollouts <- rolloutkube.RunController(ctx, b.env.Config(), rolloutkube.ControllerOptions{
			Domain: "faults", CachesOptions: rolloutkube.CachesOptions{Informers: in},
			Lead: func(ctx context.Context, work func(context.Context) error) error {
				close(leads)
				return work(ctx)
			},
		})
	}()
	loop := b.loop(in.Nodes)
	go func() { ofMachines <- machinekube.Run(ctx, loop) }()
	return ofRollouts, ofMachines, func() {
		b.Helper()
		<-leads
		b.eventually("the machines to be seen", func(context.Context) error {
			if !loop.Machines.Synced() {
				return errors.New("they are not")
			}
			return nil
		})
	}
}

// wantEnd checks the error with which a part has ended. The InformerErrors of rollouts and machines are one type.
func wantEnd(t *testing.T, what string, err error, option, remedy string) {
	t.Helper()
	var typed *rolloutkube.InformerError
	if !errors.As(err, &typed) || !strings.HasPrefix(typed.Option, option) {
		t.Errorf("%s: got %v, want an InformerError of %s", what, err, option)
		return
	}
	wantSays(t, what, err, typed.Option, remedy)
}

// TestWithoutClients: what is nil is an error that names the option, and no panic.
func TestWithoutClients(t *testing.T) {
	b := newBed(t)
	forDrain, forRollout := b.informersOf(b.newManager(b.user("nil")))
	_, err := drainkube.NewCacheFromInformers(nil, forDrain, drainkube.CacheOptions{})
	wantSays(t, "NewCacheFromInformers", err, "client is required")
	_, err = drainkube.Open(t.Context(), nil, drainkube.OpenOptions{Informers: forDrain, NoWait: true})
	wantSays(t, "Open", err, "config is required")
	_, err = drainkube.Open(t.Context(), b.env.Config(), drainkube.OpenOptions{
		Informers: drainkube.Informers{Pods: forDrain.Pods}, NoWait: true,
	})
	wantSays(t, "Open", err, "Informers.Nodes is required", "Informers.Budgets is required")
	_, err = rolloutkube.NewCaches(nil, rolloutkube.CachesOptions{Informers: forRollout})
	wantSays(t, "NewCaches", err, "config is required")
	_, err = machinekube.NewNodes(nil, nil, nil)
	wantSays(t, "NewNodes", err, "client is required", "of is required")
}
