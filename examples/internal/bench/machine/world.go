// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/providertest"
	"github.com/belayproject/belay/machine/v1alpha1"
)

const namespace = "default"

// A world is a control plane, a cloud, the controllers and the kubelets.
type world struct {
	env   *testenv.Env
	dir   string
	cloud *httptest.Server
	admin *providertest.Admin
	calls *calls
	core  kubernetes.Interface
	sets  dynamic.ResourceInterface
	stop  context.CancelFunc
	wg    sync.WaitGroup
	errs  chan error
	// ran and joined are how many instances have come to run, and how many Nodes were registered.
	ran, joined atomic.Int64
}

// milestones are when all instances were asked for, ran, and had their Nodes.
type milestones struct {
	begun             time.Time
	made, ran, joined time.Duration
}

func (m *milestones) String() string {
	return fmt.Sprintf("all asked for after %v, running after %v, with Nodes after %v",
		m.made.Round(time.Second), m.ran.Round(time.Second), m.joined.Round(time.Second))
}

// look is called once a second.
func (m *milestones) look(ctx context.Context, w *world, n int) {
	reached := func(at *time.Duration, count int64) {
		if *at == 0 && count >= int64(n) {
			*at = time.Since(m.begun)
		}
	}
	if m.made == 0 {
		if is, err := w.admin.Inventory(ctx); err == nil {
			reached(&m.made, int64(is.Instances))
		}
	}
	reached(&m.ran, w.ran.Load())
	reached(&m.joined, w.joined.Load())
}

func newWorld(ctx context.Context, start time.Duration) (w *world, err error) {
	w = &world{calls: newCalls(), errs: make(chan error, 4)}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.env, err = testenv.New(ctx, testenv.Options{}); err != nil {
		return w, err
	}
	if err := w.env.InstallCRDs(ctx, v1alpha1.CRDs()...); err != nil {
		return w, err
	}
	if w.dir, err = os.MkdirTemp("", "bench-machine-"); err != nil {
		return w, err
	}
	server, err := providertest.NewServer(providertest.ServerOptions{Dir: w.dir, NoSync: true})
	if err != nil {
		return w, err
	}
	w.cloud = httptest.NewServer(server)
	if w.admin, err = providertest.NewAdmin(providertest.Options{URL: w.cloud.URL}); err != nil {
		return w, err
	}
	config := w.env.Config()
	config.QPS = -1
	w.core = kubernetes.NewForConfigOrDie(config)
	w.sets = dynamic.NewForConfigOrDie(config).Resource(v1alpha1.MachineSetsResource).Namespace(namespace)
	ctx, w.stop = context.WithCancel(ctx)
	if err := w.control(ctx); err != nil {
		return w, err
	}
	w.wg.Go(func() { w.kubelets(ctx) })
	return w, w.create(ctx, start)
}

// control starts the controllers, whose requests are counted.
func (w *world) control(ctx context.Context) error {
	config := w.env.Config()
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, w.calls} })
	core, objects := kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	p, err := providertest.New(providertest.Options{URL: w.cloud.URL})
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(core, 0)
	nodes, err := kube.NewNodes(core, factory.Core().V1().Nodes().Informer(), nil)
	if err != nil {
		return err
	}
	machines, err := kube.NewMachines(objects, namespace)
	if err != nil {
		return err
	}
	groups, err := kube.NewGroups(objects, namespace, machines)
	if err != nil {
		return err
	}
	doctor, err := kube.NewDoctor(nodes)
	if err != nil {
		return err
	}
	c, err := controller.New(controller.Options{Cluster: "bench", Machines: machines, Nodes: nodes, Provider: p, Undrained: true})
	if err != nil {
		return err
	}
	g, err := controller.NewGroups(controller.GroupOptions{Cluster: "bench", Groups: groups, Doctor: doctor, Provider: p})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	w.wg.Go(func() {
		w.errs <- kube.RunGroups(ctx, kube.GroupLoop{Controller: g, Groups: groups, Machines: machines, Nodes: nodes})
	})
	w.wg.Go(func() {
		w.errs <- kube.Run(ctx, kube.Loop{Controller: c, Machines: machines, Nodes: nodes, SurveyEvery: period})
	})
	return nil
}

func (w *world) create(ctx context.Context, start time.Duration) error {
	labels := map[string]any{"pool": "bench"}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"roles": []any{"worker"}, "deletion": map[string]any{"diskPolicy": "Destroy"},
			"providerConfig": map[string]any{
				"apiVersion": providertest.APIVersion, "kind": providertest.KindName, "startMilliseconds": start.Milliseconds(),
			},
		}},
	}}}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind(v1alpha1.MachineSetKind)
	o.SetName("bench")
	_, err := w.sets.Create(ctx, o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

func (w *world) scale(ctx context.Context, n int) error {
	_, err := w.sets.Patch(ctx, "bench", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{})
	return err
}

// await waits until the set has n machines, all ready, and takes the milestones meanwhile.
func (w *world) await(ctx context.Context, n int, within time.Duration) (*milestones, error) {
	m := &milestones{begun: time.Now()}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("there are no %d machines after %v", n, within))
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		m.look(ctx, w, n)
		o, err := w.sets.Get(ctx, "bench", metav1.GetOptions{})
		if err == nil {
			all, _, _ := unstructured.NestedInt64(o.Object, "status", "replicas")
			ready, _, _ := unstructured.NestedInt64(o.Object, "status", "readyReplicas")
			if all == int64(n) && ready == int64(n) {
				return m, nil
			}
		}
		select {
		case <-ctx.Done():
			return m, context.Cause(ctx)
		case err := <-w.errs:
			return m, err
		case <-tick.C:
		}
	}
}

// kubelets registers a Node for each instance that runs.
func (w *world) kubelets(ctx context.Context) {
	known := map[string]bool{}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		hosts, err := w.admin.Instances(ctx)
		if err != nil {
			continue
		}
		running := int64(0)
		for _, h := range hosts {
			if h.State != provider.Running {
				continue
			}
			running++
			if !known[h.Token] && w.register(ctx, h.Instance) == nil {
				known[h.Token] = true
				w.joined.Add(1)
			}
		}
		w.ran.Store(running)
	}
}

func (w *world) register(ctx context.Context, i provider.Instance) error {
	nodes := w.core.CoreV1().Nodes()
	n, err := nodes.Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-" + i.Token}, Spec: corev1.NodeSpec{ProviderID: i.ProviderID},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		n, err = nodes.Get(ctx, "node-"+i.Token, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	_, err = nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{})
	return err
}

// left fails if anything is.
func (w *world) left(ctx context.Context) error {
	is, err := w.admin.Inventory(ctx)
	if err != nil {
		return err
	}
	nodes, err := w.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if is.Instances+is.Disks+len(nodes.Items) > 0 {
		return fmt.Errorf("%d instances, %d disks and %d Nodes are left", is.Instances, is.Disks, len(nodes.Items))
	}
	return nil
}

func (w *world) close() error {
	if w.stop != nil {
		w.stop()
	}
	w.wg.Wait()
	if w.cloud != nil {
		w.cloud.Close()
	}
	var err error
	if w.dir != "" {
		err = os.RemoveAll(w.dir)
	}
	if w.env != nil {
		err = errors.Join(err, w.env.Close())
	}
	return err
}
