// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

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
	machines, groups := newStores(t, client, "")
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

// An informer of Nodes that is not started, shows too little, or is stopped while Run goes on, ends Run with an error
// that names the option.
func TestRunOverAnInformerThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dropID := func(obj any) (any, error) {
		if n, ok := obj.(*corev1.Node); ok {
			n.Spec.ProviderID = ""
		}
		return obj, nil
	}
	selectNone := func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=other" }
	for name, c := range map[string]struct {
		with        informers.SharedInformerOption
		start, stop bool
		want        string
	}{
		"not started": {informers.WithTransform(nil), false, false, "is not started: start the factory, or the manager"},
		"stopped":     {informers.WithTransform(nil), true, true, "has stopped: run the consumer and the informer under one"},
		"transform":   {informers.WithTransform(dropID), true, false, "spec.providerID is not what the server has: its transform"},
		"selector":    {informers.WithTweakListOptions(selectNone), true, false, "it shows 0 of 1 nodes of the server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newNodeServer(t)
			core := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})
			factory := informers.NewSharedInformerFactoryWithOptions(core, 0, c.with)
			l := loopOver(t, core, factory.Core().V1().Nodes().Informer())
			owner, stop := context.WithCancel(t.Context())
			defer stop()
			if c.start {
				factory.Start(owner.Done())
			}
			ended := make(chan error, 1)
			go func() { ended <- kube.Run(t.Context(), l) }()
			if c.stop {
				waitUntil(t, l.Machines.Synced)
				waitUntil(t, l.Nodes.Synced)
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

// countingInformer counts the handlers that it has.
type countingInformer struct {
	cache.SharedIndexInformer
	added, removed atomic.Int64
}

func (i *countingInformer) AddEventHandler(
	h cache.ResourceEventHandler,
) (cache.ResourceEventHandlerRegistration, error) {
	i.added.Add(1)
	return i.SharedIndexInformer.AddEventHandler(h)
}

func (i *countingInformer) RemoveEventHandler(h cache.ResourceEventHandlerRegistration) error {
	err := i.SharedIndexInformer.RemoveEventHandler(h)
	if err == nil {
		i.removed.Add(1)
	}
	return err
}

// A process that leads again and again over one informer of Nodes leaves no handler on it when a term ends.
func TestRunsLeaveNoHandler(t *testing.T) {
	t.Parallel()
	core := kubernetes.NewForConfigOrDie(&rest.Config{Host: newNodeServer(t).URL})
	factory := informers.NewSharedInformerFactory(core, 0)
	nodes := &countingInformer{SharedIndexInformer: factory.Core().V1().Nodes().Informer()}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	for range 3 {
		l := loopOver(t, core, nodes)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- kube.Run(ctx, l) }()
		waitUntil(t, l.Machines.Synced)
		machines, groups := newStores(t, holding(), "")
		g, err := controller.NewGroups(controller.GroupOptions{Groups: groups})
		if err != nil {
			t.Fatal(err)
		}
		ofGroups := kube.GroupLoop{Controller: g, Groups: groups, Machines: machines, Nodes: l.Nodes}
		go func() { ended <- kube.RunGroups(ctx, ofGroups) }()
		waitUntil(t, groups.Synced)
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
	}
	if added, removed := nodes.added.Load(), nodes.removed.Load(); added < 6 || removed != added {
		t.Errorf("%d handlers were added, and %d removed; want 6 or more, and as many", added, removed)
	}
}

// loopOver is a controller of no machines over an informer of Nodes.
func loopOver(t *testing.T, core kubernetes.Interface, of kube.Informer) kube.Loop {
	t.Helper()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{v1alpha1.MachinesResource: "MachineList"})
	machines, _ := newStores(t, client, "")
	nodes, err := kube.NewNodes(core, of, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := controller.New(controller.Options{
		Cluster: "c", Machines: machines, Nodes: nodes, Provider: &machinetest.Memory{}, Undrained: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return kube.Loop{Controller: c, Machines: machines, Nodes: nodes}
}

// newNodeServer is an API server with one Node, whose watches never tell anything.
func newNodeServer(t *testing.T) *httptest.Server {
	t.Helper()
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "u1", ResourceVersion: "7"}}
	node.Spec.ProviderID = "memory:///token"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case r.URL.Path != "/api/v1/nodes":
			_, _ = w.Write([]byte("ok"))
		case q.Get("watch") != "" && q.Get("sendInitialEvents") != "": // as of a server that streams no lists
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
			})
		case q.Get("watch") != "":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			list := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}}
			list.ResourceVersion = "7"
			if q.Get("fieldSelector") == "" {
				list.Items = append(list.Items, node)
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(list)
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
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
