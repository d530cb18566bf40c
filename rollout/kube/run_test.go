// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// The two programs of the page take a revision over five nodes of a real API server, and end with their context.
func TestProgramsRollOut(t *testing.T) {
	b := newBed(t)
	const nodes = 5
	dir := t.TempDir()
	for i := range nodes {
		b.readyNode(fmt.Sprintf("fw-%d", i), "firmware")
	}
	b.rollout("firmware", 2)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	run := func(what string, f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				t.Errorf("%s ended with %v, want nil at the end of its context", what, err)
			}
		})
	}
	run("the controller", func() error { return runController(ctx, b.env.Config()) })
	for i := range nodes {
		node := fmt.Sprintf("fw-%d", i)
		run("the agent of "+node, func() error {
			return runQuickAgent(ctx, b.env.Config(), node, filepath.Join(dir, node))
		})
	}
	b.eventually("the rollout to be completed", func(ctx context.Context) error {
		u, err := b.client.Resource(v1alpha1.RolloutsResource).Get(ctx, "firmware", metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, _ := u.Object["status"].(map[string]any)
		if status["phase"] != string(rollout.Completed) {
			return fmt.Errorf("its status is %v", status)
		}
		return nil
	})
	stop()
	wg.Wait()
	for i := range nodes {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("fw-%d", i), "firmware"))
		if want := "v2-firmware@" + v1alpha1.OpaqueDigest("two"); err != nil || string(text) != want {
			t.Errorf("node fw-%d runs %q (%v), want %q", i, text, err, want)
		}
	}
}

// runQuickAgent is runAgent with a verification of milliseconds instead of a minute.
func runQuickAgent(ctx context.Context, config *rest.Config, node, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return kube.RunAgent(ctx, config, kube.AgentOptions{Node: node, Agent: nodeagent.Options{
		Disk: &machine{}, Updater: firmware{filepath.Join(dir, "firmware")},
		VerifyFor: time.Millisecond, VerifyEvery: time.Millisecond,
	}})
}

// readyNode creates a Node that is ready, with a label of its fleet.
func (b *bed) readyNode(name, fleet string) {
	b.t.Helper()
	_, err := b.env.CreateNode(b.ctx(), name, func(n *corev1.Node) { n.Labels = map[string]string{"fleet": fleet} })
	b.must(err)
	ready := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	_, err = b.core.CoreV1().Nodes().Patch(b.ctx(), name, types.StrategicMergePatchType, ready, metav1.PatchOptions{}, "status")
	b.must(err)
}

// rollout creates a non-intrusive revision and its rollout in the domain of that name.
func (b *bed) rollout(domain string, most int32) {
	b.t.Helper()
	pinned := v1alpha1.PinnedRevision{Name: "v2-" + domain, Digest: v1alpha1.OpaqueDigest("two")}
	b.create(v1alpha1.RevisionsResource, v1alpha1.RevisionKind, pinned.Name, &v1alpha1.Revision{
		Spec: v1alpha1.RevisionSpec{Digest: pinned.Digest, Opaque: "two", Class: v1alpha1.Class("NonIntrusive")},
	})
	b.create(v1alpha1.RolloutsResource, v1alpha1.RolloutKind, domain, &v1alpha1.Rollout{Spec: v1alpha1.RolloutSpec{
		Domain: domain, Revision: pinned, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": domain}},
		Caps: []v1alpha1.Cap{{Scope: v1alpha1.Scope(rollout.Total), Max: intstr.FromInt32(most)}},
	}})
}

// RunController over an embedder's informers, which stop while it goes on, ends with an error that names the option.
func TestRunControllerOverInformers(t *testing.T) {
	b := newBed(t)
	b.readyNode("over-0", "over")
	b.rollout("over", 1)
	factory := informers.NewSharedInformerFactory(b.core, 0)
	in := kube.FactoryInformers(factory)
	managerCtx, stopManager := context.WithCancel(t.Context())
	factory.Start(managerCtx.Done())
	led := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- kube.RunController(t.Context(), b.env.Config(), kube.ControllerOptions{
			Domain: "over", CachesOptions: kube.CachesOptions{Informers: in},
			Lead: func(ctx context.Context, work func(context.Context) error) error {
				close(led)
				return work(ctx)
			},
		})
	}()
	await(t, led, ended)
	b.eventually("a shadow of the Node", func(ctx context.Context) error {
		_, err := b.shadows.Get(ctx, "over-0")
		return err
	})
	stopManager()
	factory.Shutdown()
	select {
	case err := <-ended:
		var stopped *kube.InformerError
		if !errors.As(err, &stopped) || !strings.HasPrefix(stopped.Option, "Informers.") {
			t.Errorf("after its informers had stopped RunController returned %v, want an InformerError with the option", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("RunController goes on 30 s after its informers have stopped")
	}
}

// An informer of an embedder that drops a field or selects too little ends RunController before it does anything, with an
// error that names the option.
func TestRunControllerOverInformersThatShowTooLittle(t *testing.T) {
	b := newBed(t)
	b.readyNode("little-0", "little")
	for name, c := range map[string]struct {
		with   informers.SharedInformerOption
		option string
		want   string
	}{
		"transform": {informers.WithTransform(func(obj any) (any, error) {
			if n, ok := obj.(*corev1.Node); ok {
				n.Labels = nil
			}
			return obj, nil
		}), "Informers.Nodes", "metadata.labels is not what the server has: its transform drops a field"},
		"selector": {informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "no=node" }),
			"Informers.Nodes", "nodes of the server, not"},
		"metadata alone": {informers.WithTransform(func(obj any) (any, error) {
			if n, ok := obj.(*corev1.Node); ok {
				return &metav1.PartialObjectMetadata{ObjectMeta: n.ObjectMeta}, nil
			}
			return obj, nil
		}), "Informers.Nodes", "want *v1.Node"},
	} {
		t.Run(name, func(t *testing.T) {
			factory := informers.NewSharedInformerFactoryWithOptions(b.core, 0, c.with)
			in := kube.FactoryInformers(factory)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			factory.Start(ctx.Done())
			err := kube.RunController(ctx, b.env.Config(), kube.ControllerOptions{
				Domain: "little", CachesOptions: kube.CachesOptions{Informers: in},
				Lead: func(context.Context, func(context.Context) error) error {
					t.Error("it waits until it leads, want an error before that")
					return nil
				},
			})
			var typed *kube.InformerError
			if !errors.As(err, &typed) || typed.Option != c.option || !strings.Contains(err.Error(), c.want) {
				t.Errorf("RunController returned %v, want an InformerError of %s that says %q", err, c.option, c.want)
			}
			if ctx.Err() != nil {
				t.Error("RunController went on for a minute, want an error within a second")
			}
		})
	}
}

// await waits for a controller to lead.
func await(t *testing.T, led <-chan struct{}, ended <-chan error) {
	t.Helper()
	select {
	case <-led:
	case err := <-ended:
		t.Fatal("RunController ended:", err)
	case <-time.After(time.Minute):
		t.Fatal("the controller does not lead after a minute")
	}
}

// Missing options are errors that name all of them, at once and before any request.
func TestRunWithoutOptions(t *testing.T) {
	err := kube.RunController(t.Context(), nil, kube.ControllerOptions{})
	wantNames(t, "RunController", err, "ControllerOptions.Domain", "config")
	err = kube.RunAgent(t.Context(), nil, kube.AgentOptions{})
	wantNames(t, "RunAgent", err, "AgentOptions.Node", "AgentOptions.Agent.Disk", "AgentOptions.Agent.Updater", "config")
	_, err = kube.NewHealth(kube.Informers{}, kube.HealthOptions{})
	wantNames(t, "NewHealth", err, "Informers.Nodes", "Informers.Pods", "Informers.Deployments", "Informers.StatefulSets", "Informers.DaemonSets")
	_, err = kube.NewCaches(nil, kube.CachesOptions{})
	wantNames(t, "NewCaches", err, "config")
	for name, construct := range map[string]func() error{
		"NewShadows":        func() error { _, err := kube.NewShadows(nil); return err },
		"NewShadowCache":    func() error { _, err := kube.NewShadowCache(nil); return err },
		"NewRolloutCache":   func() error { _, err := kube.NewRolloutCache(nil); return err },
		"NewRevisionCache":  func() error { _, err := kube.NewRevisionCache(nil); return err },
		"NewOwnShadowCache": func() error { _, err := kube.NewOwnShadowCache(nil, "n"); return err },
		"NewFleet":          func() error { _, err := kube.NewFleet(nil, nil); return err },
		"NewRecords":        func() error { _, err := kube.NewRecords(nil, nil); return err },
		"NewRollouts":       func() error { _, err := kube.NewRollouts(nil, kube.RolloutsOptions{}); return err },
		"NewLedgerStore":    func() error { _, err := kube.NewLedgerStore(nil, ""); return err },
		"NewAgentShadow":    func() error { _, err := kube.NewAgentShadow(nil, "", nil); return err },
	} {
		wantNames(t, name, construct(), "is required")
	}
}

func wantNames(t *testing.T, of string, err error, names ...string) {
	t.Helper()
	for _, name := range names {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s without its options: %v, want an error that names %q", of, err, name)
		}
	}
}

// A second Run of Caches that run is an error.
func TestCachesRunTwice(t *testing.T) {
	b := newBed(t)
	caches := must1(kube.NewCaches(b.env.Config(), kube.CachesOptions{}))
	ctx, stop := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { first <- caches.Run(ctx) }()
	b.eventually("the caches", func(context.Context) error { return caches.Check() })
	if err := caches.Run(ctx); !errors.Is(err, controller.ErrRunning) {
		t.Errorf("a second Run returned %v, want ErrRunning", err)
	}
	stop()
	if err := <-first; err != nil {
		t.Errorf("the first Run returned %v, want nil", err)
	}
}
