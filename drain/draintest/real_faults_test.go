// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/tier"
)

// TestTheDrainerSurvivesFaultsOnAServer runs the faults with a real API server and real controllers: on the wire, so that the client of
// package kube reads them, and the server does what was asked where only the answer is lost. They meet every request that a Drainer makes:
// PATCH and GET of the Node, evictions, DELETE, and the list of pods; a dry run it does not send. R-DR-01, R-DR-02, R-DR-09.
func TestTheDrainerSurvivesFaultsOnAServer(t *testing.T) {
	fast := []string{"--kube-api-qps=500", "--kube-api-burst=1000"}
	env := testenv.Start(t, testenv.Options{
		With: []testenv.Component{testenv.ControllerManager, testenv.Scheduler, testenv.Kwok},
		Args: map[testenv.Component][]string{
			testenv.Scheduler: fast,
			testenv.ControllerManager: append(fast, patient,
				"--controllers=disruption-controller,replicaset-controller,statefulset-controller,node-lifecycle-controller"),
		},
	})
	draintest.TestDrainerFaultsAtOnce(t, func(t *testing.T) draintest.Bed {
		if !inPart(t, 4) {
			tier.LeaveToProofs(t, "TestTheDrainerSurvivesEveryFault has the same rule in make test")
		}
		return newWireBed(t, env)
	}, 32)
}

// A wireBed is a real bed whose requests and watches pass a wire. Its cache has its own nodes and pods alone: there are many beds.
type wireBed struct {
	*realBed
	*draintest.Wire
}

func newWireBed(t *testing.T, env *testenv.Env) wireBed {
	t.Helper()
	wire := draintest.NewWire()
	config := env.Config()
	config.Wrap(wire.Requests)
	client, err := kube.NewClientForConfig(config, nil, kube.ClientOptions{QPS: 1000, Burst: 1000})
	must(t, "making a client", 0, err)
	ns := env.Namespace(t)
	b := &realBed{real: real{env: env, typed: kubernetes.NewForConfigOrDie(env.Config()), client: client}, ns: ns}
	b.cache = narrowCache(t, env.Config(), wire, ns)
	return wireBed{b, wire}
}

// narrowCache is a cache of the nodes, pods and budgets of one bed.
func narrowCache(t *testing.T, config *rest.Config, wire *draintest.Wire, ns string) *kube.Cache {
	t.Helper()
	config.Wrap(wire.Watches)
	factory := informers.NewSharedInformerFactoryWithOptions(kubernetes.NewForConfigOrDie(config), 0,
		informers.WithNamespace(ns), informers.WithTransform(kube.Transform))
	factory.InformerFor(&corev1.Node{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewFilteredNodeInformer(client, resync, cache.Indexers{}, func(o *metav1.ListOptions) { o.LabelSelector = bedLabel + "=" + ns })
	})
	c, err := kube.NewCache(factory, kube.CacheOptions{DaemonSets: true})
	must(t, "making a cache", 0, err)
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	must(t, "syncing the cache", 0, c.WaitForSync(t.Context()))
	return c
}

func (b wireBed) Parts(*testing.T) drain.Options {
	return drain.Options{Cache: b.cache.View(), Client: b.client}
}

func (b wireBed) Plot() *draintest.Script { return b.Script }

// Patience is short where the test is to fail.
func (b wireBed) Patience() time.Duration {
	if os.Getenv("BELAY_MUTANT") != "" {
		return 30 * time.Second
	}
	return 6 * time.Minute // of many at once on a busy machine
}

// Pod makes a pod, and waits until its kubelet has it run: a cache that is cut off does not show it.
func (b wireBed) Pod(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	_, err := b.typed.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, "making a pod", 0, err)
	b.await(t, func() string {
		if p := b.GetPod(t, pod.Namespace, pod.Name); p == nil || !podReady(p) {
			return "pod " + pod.Name + " is not ready"
		}
		return ""
	})
}
