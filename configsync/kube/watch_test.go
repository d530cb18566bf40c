// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kube/internal/matrix"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/testenv"
)

// watching runs a watch for the test and counts the calls of changed.
type watching struct{ calls atomic.Int64 }

// watch begins a watch and waits until it works.
func watch(t *testing.T, run func(context.Context, func()) error) *watching {
	t.Helper()
	w := begin(t, run)
	w.more(t, 0, "the watch to begin")
	return w
}

func begin(t *testing.T, run func(context.Context, func()) error) *watching {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watching{}
	done := make(chan error, 1)
	go func() { done <- run(ctx, func() { w.calls.Add(1) }) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the watch ended with %v, want nil when its context ends", err)
			}
		case <-time.After(30 * time.Second):
			t.Error("the watch goes on though its context has ended")
		}
	})
	return w
}

// more waits until changed was called more often than n times.
func (w *watching) more(t *testing.T, n int64, what string) {
	t.Helper()
	eventually(t, what, func() error {
		if got := w.calls.Load(); got <= n {
			return fmt.Errorf("changed was called %d times, want more than %d", got, n)
		}
		return nil
	})
}

// TestWatchSeesChangesOfTheSource covers R-CS-21/37: a change of the source, and nothing else, is seen, without polling.
func TestWatchSeesChangesOfTheSource(t *testing.T) {
	c := newCluster(t)
	config, count := counted(c.agent)
	source, err := kube.NewNodeConfigSource(clientFor(t, config), c.node, kube.Options{})
	must(t, err)
	w := watch(t, source.Watch)
	for i, s := range []string{"", `{"configMapRef":{"namespace":"a","name":"b","uid":"c"}}`, ""} {
		n := w.calls.Load()
		must(t, c.assignNodeConfig(deadline(t), s))
		w.more(t, n, fmt.Sprintf("change %d of the NodeConfig", i))
	}
	n := w.calls.Load()
	must(t, c.all.Resource(v1alpha1.NodeConfigsResource).Delete(deadline(t), c.node, metav1.DeleteOptions{}))
	w.more(t, n, "the end of the NodeConfig")
	if got := count(http.MethodGet); got > 2 {
		t.Errorf("%d requests to see 4 changes, want one list and one watch at most", got)
	}
}

// TestWatchIgnoresReports shows that a node's own reports, and those of the kubelet, don't make it look again.
func TestWatchIgnoresReports(t *testing.T) {
	c := newCluster(t)
	must(t, c.assignNodeConfig(deadline(t), ""))
	source, err := kube.NewNodeConfigSource(c.client, c.node, kube.Options{})
	must(t, err)
	annotations, err := kube.NewAnnotationSource(c.client, c.node, kube.Options{})
	must(t, err)
	ofNodeConfig, ofNode := watch(t, source.Watch), watch(t, annotations.Watch)
	a, b := ofNodeConfig.calls.Load(), ofNode.calls.Load()
	for i := range 5 {
		status := fmt.Sprintf(`{"status":{"error":"report %d","conditions":[]}}`, i)
		_, err := c.all.Resource(v1alpha1.NodeConfigsResource).
			Patch(deadline(t), c.node, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
		must(t, err)
		label := fmt.Sprintf(`{"metadata":{"labels":{"beat":"%d"}}}`, i)
		_, err = c.admin.CoreV1().Nodes().Patch(deadline(t), c.node, types.MergePatchType, []byte(label), metav1.PatchOptions{})
		must(t, err)
	}
	// Events come in order: when a change of the source is seen, the reports before it were.
	must(t, c.assignNodeConfig(deadline(t), `{"configMapRef":{"namespace":"a","name":"b","uid":"c"}}`))
	must(t, c.annotate(deadline(t), "null"))
	ofNodeConfig.more(t, a, "the change of the NodeConfig")
	ofNode.more(t, b, "the change of the annotation")
	if got := ofNodeConfig.calls.Load() - a; got != 1 {
		t.Errorf("changed was called %d times for one change of the NodeConfig and 5 reports, want 1", got)
	}
	if got := ofNode.calls.Load() - b; got != 1 {
		t.Errorf("changed was called %d times for one change of the annotation and 5 of labels, want 1", got)
	}
}

// TestWatchSeesEditsOfAFollowedConfig covers R-CS-82: edit, deletion and recreation of a followed ConfigMap are seen, and those of its
// neighbours are not. A right on that name alone is enough.
func TestWatchSeesEditsOfAFollowedConfig(t *testing.T) {
	c := newCluster(t)
	user := "reader-" + c.node
	c.grantIn(t, c.namespace, user, kube.ConfigMapRules("followed")...)
	config, count := counted(c.env.User(t, user))
	f, err := kube.NewConfigMapFetcher(clientFor(t, config), kube.Options{})
	must(t, err)
	spec := configsync.Spec{Namespace: c.namespace, Name: "followed", Policy: configsync.Follow}
	w := watch(t, func(ctx context.Context, changed func()) error { return f.WatchObject(ctx, spec, changed) })
	m := matrix.ConfigMap{Name: "followed", Payloads: map[string]matrix.Payload{matrix.Key: matrix.GoodA}}
	_, err = c.Create(deadline(t), matrix.ConfigMap{Name: "neighbour"})
	must(t, err)
	step := func(what string, do func() error) {
		n := w.calls.Load()
		must(t, do())
		w.more(t, n, what)
		if got := w.calls.Load(); got != n+1 {
			t.Errorf("%s: changed was called %d times, want once", what, got-n)
		}
	}
	step("creation", func() error { _, err := c.Create(deadline(t), m); return err })
	m.Payloads[matrix.Key] = matrix.GoodB
	step("edit", func() error { _, err := c.Edit(deadline(t), m); return err })
	step("deletion", func() error { return c.Delete(deadline(t), "followed") })
	step("recreation", func() error { _, err := c.Create(deadline(t), m); return err })
	if got := count(http.MethodGet); got > 2 {
		t.Errorf("%d requests to see 4 changes, want one list and one watch at most", got)
	}
}

// TestHundredFlips shows that many changes of the source cost nothing that stays: neither goroutines nor missed changes.
func TestHundredFlips(t *testing.T) {
	c := newCluster(t)
	source, err := kube.NewAnnotationSource(c.client, c.node, kube.Options{})
	must(t, err)
	w := watch(t, source.Watch)
	before := runtime.NumGoroutine()
	for i := range 100 {
		n := w.calls.Load()
		want := []string{"a", "b"}[i%2]
		must(t, c.annotate(deadline(t), `{"configMapRef":{"namespace":"x","name":"`+want+`","uid":"u"}}`))
		w.more(t, n, fmt.Sprintf("flip %d", i))
		spec, err := source.Desired(deadline(t))
		if err != nil || spec.Name != want {
			t.Fatalf("flip %d: got %v, %v, want the name %q", i, spec, err, want)
		}
	}
	if after := runtime.NumGoroutine(); after > before+10 {
		t.Errorf("%d goroutines after 100 flips, %d before", after, before)
	}
}

// TestWatchOutlivesTheServer takes one control plane of its own through what happens to one: the kind isn't served yet; the API server
// is killed and comes back; it is frozen. The watch goes on, and no call takes longer than its timeout.
func TestWatchOutlivesTheServer(t *testing.T) {
	t.Parallel()
	env := testenv.Start(t, testenv.Options{})
	client := clientFor(t, env.Config())
	source, err := kube.NewNodeConfigSource(client, "n", kube.Options{Timeout: 2 * time.Second})
	must(t, err)
	w := begin(t, source.Watch)
	patient, err := kube.NewNodeConfigSource(client, "n", kube.Options{}) // the first answer of a server that has just begun may take longer
	must(t, err)
	if _, err = patient.Desired(deadline(t)); !errors.Is(err, configsync.ErrUnreachable) || !strings.Contains(err.Error(), "doesn't serve this kind") {
		t.Errorf("got %v before the CustomResourceDefinition is installed, want that the kind isn't served", err)
	}
	must(t, kube.Install(deadline(t), env.Config()))
	c := &cluster{env: env, all: client, admin: kubernetes.NewForConfigOrDie(env.Config()), node: "n"}
	must(t, c.assignNodeConfig(deadline(t), ""))
	w.more(t, 0, "the NodeConfig, though its kind wasn't served when the watch began")

	must(t, env.APIServer().Kill())
	if _, err = source.Desired(deadline(t)); !errors.Is(err, configsync.ErrUnreachable) {
		t.Errorf("got %v from a server that can't answer, want it unreachable", err)
	}
	must(t, env.APIServer().Start(deadline(t)))
	n := w.calls.Load()
	must(t, c.assignNodeConfig(deadline(t), `{"configMapRef":{"namespace":"a","name":"b","uid":"c"}}`))
	w.more(t, n, "a change after the API server came back")

	must(t, env.APIServer().Pause())
	began := time.Now()
	if _, err = source.Desired(deadline(t)); !errors.Is(err, configsync.ErrUnreachable) {
		t.Errorf("got %v from a server that can't answer, want it unreachable", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the call took %s while the API server was frozen, want about 2 s", took)
	}
	must(t, env.APIServer().Resume())
	n = w.calls.Load()
	eventually(t, "the API server to answer again", func() error { return c.assignNodeConfig(deadline(t), "") })
	w.more(t, n, "a change after the API server was frozen")
}

// TestWatchComesThroughExpiredVersions shows that a watch whose version the server has forgotten lists again and sees what changed.
func TestWatchComesThroughExpiredVersions(t *testing.T) {
	var version, watches atomic.Int64
	version.Store(1)
	const list = `{"apiVersion":"belay.dev/v1alpha1","kind":"NodeConfigList","metadata":{"resourceVersion":"%d"},"items":[
		{"apiVersion":"belay.dev/v1alpha1","kind":"NodeConfig","metadata":{"name":"n","uid":"u","generation":%[1]d,"resourceVersion":"%[1]d"}}]}`
	client := clientFor(t, impostor(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("sendInitialEvents") != "":
			says(http.StatusUnprocessableEntity, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)(w, r)
		case r.URL.Query().Get("watch") == "":
			says(http.StatusOK, fmt.Sprintf(list, version.Load()))(w, r)
		case watches.Add(1) == 1:
			version.Store(2)
			says(http.StatusOK, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)(w, r)
		default:
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	source, err := kube.NewNodeConfigSource(client, "n", kube.Options{})
	must(t, err)
	watch(t, source.Watch).more(t, 1, "what changed while the version expired")
	if got := watches.Load(); got < 1 {
		t.Errorf("%d watches, want at least the one that expired", got)
	}
}

// TestLongWatchIsNotCutShort shows that the bound on answers isn't one on watches, which go on for as long as they like.
func TestLongWatchIsNotCutShort(t *testing.T) {
	var watches atomic.Int64
	const object = `{"apiVersion":"belay.dev/v1alpha1","kind":"NodeConfig","metadata":{"name":"n","uid":"u","generation":%d,"resourceVersion":"%[1]d",
		"annotations":{"a":"%s"}}}`
	client := clientFor(t, impostor(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("sendInitialEvents") != "":
			says(http.StatusUnprocessableEntity, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)(w, r)
		case r.URL.Query().Get("watch") == "":
			says(http.StatusOK, `{"apiVersion":"belay.dev/v1alpha1","kind":"NodeConfigList","metadata":{"resourceVersion":"1"},"items":[]}`)(w, r)
		default:
			watches.Add(1)
			w.Header().Set("Content-Type", "application/json")
			padding := strings.Repeat("x", 1<<20)
			for i := range 6 {
				fmt.Fprintf(w, `{"type":"MODIFIED","object":`+object+"}\n", i+2, padding)
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
		}
	}))
	source, err := kube.NewNodeConfigSource(client, "n", kube.Options{})
	must(t, err)
	watch(t, source.Watch).more(t, 6, "the absence and six changes")
	if got := watches.Load(); got != 1 {
		t.Errorf("%d watches for an answer above %d bytes, want one", got, kube.MaxResponse)
	}
}
