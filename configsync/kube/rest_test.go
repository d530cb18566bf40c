// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/v1alpha1"
)

// resting is an API server in memory on which nothing happens: its watches have a bookmark each minute, or none while it is silent.
type resting struct {
	client *fake.FakeDynamicClient
	silent atomic.Bool
}

func newResting(t *testing.T) *resting {
	object := func(version, kind string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
		u.SetName("node")
		u.SetUID("a")
		u.SetResourceVersion("5")
		return u
	}
	nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	r := &resting{client: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{v1alpha1.NodeConfigsResource: "NodeConfigList", nodes: "NodeList"},
		object(v1alpha1.NodeConfigsResource.GroupVersion().String(), v1alpha1.NodeConfigKind), object("v1", "Node"))}
	r.client.PrependWatchReactor("*", func(clienttesting.Action) (bool, apiwatch.Interface, error) {
		w := apiwatch.NewRaceFreeFake()
		go r.bookmarks(t.Context(), w)
		return true, w, nil
	})
	r.client.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(a.(clienttesting.PatchAction).GetPatch()); err != nil {
			return true, nil, err
		}
		u.SetResourceVersion("6")
		return true, u, r.client.Tracker().Update(a.GetResource(), u, "")
	})
	return r
}

func (r *resting) bookmarks(ctx context.Context, w *apiwatch.RaceFreeFakeWatcher) {
	for n := 7; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Minute):
		}
		if r.silent.Load() || w.IsStopped() {
			continue
		}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.NodeConfigsResource.GroupVersion().String(), "kind": v1alpha1.NodeConfigKind}}
		u.SetResourceVersion(fmt.Sprint(n))
		w.Action(apiwatch.Bookmark, u)
	}
}

// asked counts what was read or written since the last time, as "get nodes".
func (r *resting) asked() map[string]int {
	all := map[string]int{}
	for _, a := range r.client.Actions() {
		if v := a.GetVerb(); v == "get" || v == "patch" {
			all[v+" "+a.GetResource().Resource]++
		}
	}
	r.client.ClearActions()
	return all
}

// TestNodeAtRestAsksForNothing: as long as the API server says that the watch lives, what it has brought is not read again, and a Node is read once an
// hour; a watch that falls silent is not believed. R-CS-70.
func TestNodeAtRestAsksForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		r := newResting(t)
		source, err := kube.NewNodeConfigSource(r.client, "node", kube.Options{})
		must(t, err)
		status := source.StatusReporter()
		condition, err := kube.NewNodeConditionReporter(r.client, "node", kube.Options{Reread: time.Hour})
		must(t, err)
		ended := make(chan error, 1)
		go func() { ended <- source.Watch(ctx, func() {}) }()
		synctest.Wait()
		began := statusOK(time.Now())
		pass := func() {
			t.Helper()
			_, err := source.Desired(ctx)
			must(t, err)
			must(t, status.Report(ctx, began))
			must(t, condition.Report(ctx, began))
		}
		rests := func(what, want string, d time.Duration) {
			t.Helper()
			for end := time.Now().Add(d); time.Now().Before(end); <-time.After(10 * time.Minute) {
				pass()
			}
			if got := fmt.Sprint(r.asked()); got != want {
				t.Errorf("%s it has asked %s, want %s", what, got, want)
			}
		}
		pass()
		r.asked()
		rests("in the first hour", "map[]", 50*time.Minute)
		rests("in the hour after it", "map[get nodes:1]", time.Hour)
		r.silent.Store(true)
		<-time.After(10 * time.Minute)
		rests("of a watch that is silent", "map[get nodeconfigs:1 get nodes:1]", 10*time.Minute)
		stop()
		must(t, <-ended)
	})
}

// TestNegativeTimesAreRefused: each error names the option, what it is and what it may be.
func TestNegativeTimesAreRefused(t *testing.T) {
	r := newResting(t)
	for name, o := range map[string]kube.Options{"timeout": {Timeout: -1}, "retryMax": {RetryMax: -1}, "reread": {Reread: -1}} {
		_, err := kube.NewNodeConditionReporter(r.client, "node", o)
		if err == nil || !strings.Contains(err.Error(), name+" must be positive, or 0 for ") || !strings.HasSuffix(err.Error(), "got -1ns") {
			t.Errorf("%s of -1ns: got %v, want an error that names it", name, err)
		}
	}
}
