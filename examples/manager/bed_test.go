// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/belayproject/belay/examples/metrics"
	"github.com/belayproject/belay/internal/testenv"
	machinekube "github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/machinetest"
	rolloutkube "github.com/belayproject/belay/rollout/kube"
)

// auditPolicy keeps the requests of managers: their users are in the group managers.
const auditPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n" +
	"rules: [{level: Metadata, userGroups: [managers]}, {level: None}]\n"

var shared = testenv.Shared{Options: testenv.Options{
	AuditPolicy: auditPolicy,
	With:        []testenv.Component{testenv.ControllerManager, testenv.Scheduler, testenv.Kwok},
}}

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(shared.Main(m))
}

// patience is how long the servers may take for what a test waits for.
const patience = 3 * time.Minute

// A bed is a control plane with the definitions of belay, and what a test does there.
type bed struct {
	*testing.T
	env     *testenv.Env
	core    kubernetes.Interface
	objects dynamic.Interface
}

func newBed(t *testing.T) bed {
	t.Helper()
	env := shared.Env(t)
	b := bed{t, env, kubernetes.NewForConfigOrDie(env.Config()), dynamic.NewForConfigOrDie(env.Config())}
	b.must(rolloutkube.Install(t.Context(), env.Config()))
	b.must(machinekube.Install(t.Context(), env.Config()))
	return b
}

func (b bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// eventually waits until done returns nil.
func (b bed) eventually(what string, done func(ctx context.Context) error) {
	b.Helper()
	var last error
	err := wait.PollUntilContextTimeout(b.Context(), 50*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) { last = done(ctx); return last == nil, nil })
	if err != nil {
		b.Fatalf("%s: %v, last: %v", what, err, last)
	}
}

// user is a client of a manager of its own.
func (b bed) user(name string) *rest.Config {
	b.Helper()
	return b.env.User(b, name, "managers", "system:masters")
}

// newManager is a manager like that of main, but for what a process has only once.
func (b bed) newManager(client *rest.Config, change ...func(*ctrl.Options)) ctrl.Manager {
	b.Helper()
	skip := true // several managers of a process have controllers of the same names
	o := ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
	}
	for _, c := range change {
		c(&o)
	}
	mgr, err := ctrl.NewManager(client, o)
	b.must(err)
	return mgr
}

// newParts are those of a manager over machines in memory.
func newParts() (parts, *machinetest.Memory) {
	cloud := &machinetest.Memory{}
	return parts{metrics.NewDrain(), metrics.NewRollout(), metrics.NewMachine(), cloud}, cloud
}

// start runs a manager until stop is called, which fails the test where the manager ended with an error.
func (b bed) start(mgr ctrl.Manager) (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() {
		b.Helper()
		cancel()
		if err := <-ended; err != nil {
			b.Errorf("the manager ended with %v, want nil at the end of its context", err)
		}
	}
}

// node creates a Node that kwok plays.
func (b bed) node(name string, labels map[string]string) *corev1.Node {
	b.Helper()
	node, err := b.env.CreateNode(b.Context(), name, testenv.KwokNode, func(n *corev1.Node) {
		for k, v := range labels {
			n.Labels[k] = v
		}
	})
	b.must(err)
	return node
}

// annotate sets an annotation of a Node, or removes it where value is nil.
func (b bed) annotate(node, key string, value any) {
	b.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	b.must(err)
	_, err = b.core.CoreV1().Nodes().Patch(b.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	b.must(err)
}

// create creates an object of belay.
func (b bed) create(resource schema.GroupVersionResource, kind, namespace, name string, object any) {
	b.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	b.must(err)
	u := &unstructured.Unstructured{Object: fields}
	u.SetAPIVersion(resource.GroupVersion().String())
	u.SetKind(kind)
	u.SetName(name)
	delete(u.Object, "status")
	_, err = b.objects.Resource(resource).Namespace(namespace).Create(b.Context(), u, metav1.CreateOptions{})
	b.must(err)
}

// phase is that of the status of an object of belay.
func (b bed) phase(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (string, error) {
	u, err := b.objects.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	phase, _, err := unstructured.NestedString(u.Object, "status", "phase")
	return phase, err
}

// watches counts the watches of a user by resource, as the audit log of the API server has them.
func (b bed) watches(user string) map[string]int {
	b.Helper()
	file, err := os.Open(b.env.AuditLog())
	b.must(err)
	defer file.Close()
	counts, seen := map[string]int{}, map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var event struct {
			AuditID, Verb string
			User          struct{ Username string }
			ObjectRef     struct{ Resource string }
		}
		b.must(json.Unmarshal(lines.Bytes(), &event))
		if event.Verb == "watch" && event.User.Username == user && !seen[event.AuditID] {
			seen[event.AuditID] = true
			counts[event.ObjectRef.Resource]++
		}
	}
	b.must(lines.Err())
	return counts
}

// names returns the names of the metrics of a collector that have a value.
func (b bed) names(c prometheus.Collector) map[string]bool {
	b.Helper()
	registry := prometheus.NewRegistry()
	b.must(registry.Register(c))
	families, err := registry.Gather()
	b.must(err)
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	return names
}

// wantMetrics checks that a collector shows values under these names.
func (b bed) wantMetrics(c prometheus.Collector, want ...string) {
	b.Helper()
	have := b.names(c)
	for _, name := range want {
		if !have[name] {
			b.Errorf("the metrics %v, want %s among them", fmt.Sprint(have), name)
		}
	}
}
