// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// What can't be watched is an error at once, and not at the end: nothing would ever be reconciled.
func TestRunReturnsWhatIsWrong(t *testing.T) {
	t.Parallel()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		v1alpha1.MachinesResource: "MachineList", v1alpha1.MachineSetsResource: "MachineSetList", v1alpha1.MachineDeploymentsResource: "MachineDeploymentList",
		v1alpha1.MachineHealthChecksResource: "MachineHealthCheckList",
	})
	core := kubernetes.NewForConfigOrDie(&rest.Config{Host: "127.0.0.1:1"}) // nobody is there
	machines := kube.NewMachines(client, "")
	groups := kube.NewGroups(client, "", machines)
	nodes, err := kube.NewNodes(core, informers.NewSharedInformerFactory(core, 0).Core().V1().Nodes().Informer(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = machines.Run(ctx, func(machine.Key) {}) }()
	go func() { _ = groups.Run(ctx, func(string) {}) }()
	waitUntil(t, machines.Synced)
	waitUntil(t, groups.Synced)
	c, err := controller.New(controller.Options{Cluster: "c", Machines: machines, Nodes: nodes, Provider: &machinetest.Memory{}, Undrained: true})
	if err != nil {
		t.Fatal(err)
	}
	g, err := controller.NewGroups(controller.GroupOptions{Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	for what, run := range map[string]func() error{
		"Run": func() error { return kube.Run(ctx, kube.Loop{Controller: c, Machines: machines, Nodes: nodes}) },
		"RunGroups": func() error {
			return kube.RunGroups(ctx, kube.GroupLoop{Controller: g, Groups: groups, Machines: machines})
		},
	} {
		ended := make(chan error, 1)
		go func() { ended <- run() }()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "already started") {
				t.Errorf("%s of what runs already: %v", what, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s of what runs already says nothing", what)
		}
	}
}

// An informer of Nodes that is not started, or is stopped while Run goes on, ends Run with an error that names the option.
func TestRunWithoutARunningInformer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		runs bool
		want string
	}{
		"not started": {false, "is not started: start the factory, or the manager"},
		"stopped":     {true, "has stopped: run the consumer and the informer under one context"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
				map[schema.GroupVersionResource]string{v1alpha1.MachinesResource: "MachineList"})
			core := fake.NewClientset()
			factory := informers.NewSharedInformerFactory(core, 0)
			machines := kube.NewMachines(client, "")
			// Nodes ask a server whether it is there, which a fake has not.
			workload := kubernetes.NewForConfigOrDie(&rest.Config{Host: "127.0.0.1:1"})
			nodes, err := kube.NewNodes(workload, factory.Core().V1().Nodes().Informer(), nil)
			if err != nil {
				t.Fatal(err)
			}
			controlled, err := controller.New(controller.Options{
				Cluster: "c", Machines: machines, Nodes: nodes, Provider: &machinetest.Memory{}, Undrained: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			owner, stop := context.WithCancel(t.Context())
			defer stop()
			if c.runs {
				factory.Start(owner.Done())
			}
			ended := make(chan error, 1)
			go func() {
				ended <- kube.Run(t.Context(), kube.Loop{Controller: controlled, Machines: machines, Nodes: nodes})
			}()
			if c.runs {
				waitUntil(t, machines.Synced)
				waitUntil(t, nodes.Synced)
				stop()
				factory.Shutdown()
			}
			select {
			case err := <-ended:
				var typed *kube.InformerError
				if !errors.As(err, &typed) || typed.Option != "Loop.Nodes" || !strings.Contains(err.Error(), c.want) {
					t.Errorf("Run ended with %v, want an InformerError of Loop.Nodes that says %q", err, c.want)
				}
			case <-time.After(30 * time.Second):
				t.Error("Run goes on after 30 s, want an error within a second")
			}
		})
	}
}

func waitUntil(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); {
		if time.Now().After(deadline) {
			t.Fatal("it takes longer than 10 s")
		}
		<-time.After(10 * time.Millisecond)
	}
}

// What Run, RunGroups and NewNodes lack is one error that names all of it.
func TestRunWithoutItsParts(t *testing.T) {
	_, nodes := kube.NewNodes(nil, nil, nil)
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"Run":       {kube.Run(t.Context(), kube.Loop{}), []string{"Loop.Controller", "Loop.Machines", "Loop.Nodes"}},
		"RunGroups": {kube.RunGroups(t.Context(), kube.GroupLoop{}), []string{"GroupLoop.Controller", "GroupLoop.Groups", "GroupLoop.Machines"}},
		"NewNodes":  {nodes, []string{"client", "of"}},
	} {
		for _, want := range c.want {
			if c.err == nil || !strings.Contains(c.err.Error(), want+" is required") {
				t.Errorf("%s without its parts: %v, want an error that names %q", name, c.err, want)
			}
		}
	}
}

// The Nodes of an informer that its owner has stopped are unknown, not absent.
func TestNodesOfAStoppedInformer(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	nodes, err := kube.NewNodes(fake.NewClientset(), factory.Core().V1().Nodes().Informer(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if _, err := nodes.Of(t.Context(), "token"); err != nil {
		t.Fatalf("a running informer: %v", err)
	}
	stop()
	factory.Shutdown()
	var stopped *kube.InformerError
	if found, err := nodes.Of(t.Context(), "token"); !errors.As(err, &stopped) {
		t.Errorf("of a stopped informer: %d Nodes and %v, want an InformerError", len(found), err)
	}
}
