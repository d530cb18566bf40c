// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kube/internal/matrix"
	"github.com/belayproject/belay/configsync/v1alpha1"
)

// calls are the requests of an agent, but for lists and watches, as "GET nodes".
type calls struct {
	mu  sync.Mutex
	all []string
}

// client is one of the agent whose calls are noted.
func (k *calls) client(t *testing.T, c *cluster) dynamic.Interface {
	t.Helper()
	config, _ := counted(c.agent)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if !strings.Contains(r.URL.RawQuery, "fieldSelector=") {
				words := strings.Split(r.URL.Path, "/")
				what := words[len(words)-2]
				if words[len(words)-1] == "status" {
					what = words[len(words)-3] + "/status"
				}
				k.mu.Lock()
				defer k.mu.Unlock()
				k.all = append(k.all, r.Method+" "+what)
			}
			return next.RoundTrip(r)
		})
	})
	return clientFor(t, config)
}

// take returns the calls since the last time.
func (k *calls) take() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.all
	k.all = nil
	return all
}

// await waits until a call has been made since the last time.
func (k *calls) await(t *testing.T, call string) {
	t.Helper()
	eventually(t, call, func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if !slices.Contains(k.all, call) {
			return fmt.Errorf("there were %q", k.all)
		}
		return nil
	})
}

// were checks the calls since the last time.
func (k *calls) were(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := k.take(); !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
		t.Errorf("%s took the calls %q, want %q", what, got, want)
	}
}

// TestWatchedSourceIsNotReadAgain: what the watch of the source has brought is what is wanted, and what a report is compared with and written to. A report
// meets what others wrote since, and never lands on another object.
func TestWatchedSourceIsNotReadAgain(t *testing.T) {
	c := newCluster(t)
	must(t, c.assignNodeConfig(deadline(t), ""))
	k := &calls{}
	source, err := kube.NewNodeConfigSource(k.client(t, c), c.node, kube.Options{})
	must(t, err)
	report := source.StatusReporter()
	desired := func(want string) {
		t.Helper()
		spec, err := source.Desired(deadline(t))
		must(t, err)
		if spec == nil || spec.Name != want {
			t.Errorf("the source names %+v, want %q", spec, want)
		}
	}
	_, err = source.Desired(deadline(t))
	must(t, err)
	must(t, report.Report(deadline(t), statusOK(time.Time{})))
	k.were(t, "a look and a report without a watch", "GET nodeconfigs", "GET nodeconfigs", "PATCH nodeconfigs/status")
	w := watch(t, source.Watch)
	n := w.calls.Load()
	must(t, c.assignNodeConfig(deadline(t), `{"configMapRef":{"namespace":"a","name":"b","uid":"c"}}`))
	w.more(t, n, "the assignment")
	desired("b")
	must(t, report.Report(deadline(t), statusUnclear(time.Time{})))
	must(t, report.Report(deadline(t), statusUnclear(time.Time{})))
	desired("b")
	k.were(t, "an assignment that the watch has brought, and two equal reports", "PATCH nodeconfigs/status")

	foreign := `{"status":{"active":{"display":"foreign"}}}`
	_, err = c.all.Resource(v1alpha1.NodeConfigsResource).Patch(deadline(t), c.node, types.MergePatchType, []byte(foreign), metav1.PatchOptions{}, "status")
	must(t, err)
	must(t, report.Report(deadline(t), statusOK(time.Time{})))
	if got := c.nodeConfig(t).Status; got.Active.Display != "ns/cm" || got.Conditions[0].Reason != v1alpha1.ReasonUsingCurrent {
		t.Errorf("after the report of another writer's object it is %+v, want the report", got)
	}
	must(t, c.all.Resource(v1alpha1.NodeConfigsResource).Delete(deadline(t), c.node, metav1.DeleteOptions{}))
	must(t, c.assignNodeConfig(deadline(t), `{"configMapRef":{"namespace":"a","name":"new","uid":"c"}}`))
	must(t, report.Report(deadline(t), statusUnclear(time.Time{})))
	if got := c.nodeConfig(t).Status; got.Error == "" {
		t.Errorf("the object that was created again has the status %+v, want the report", got)
	}
	eventually(t, "the new object's source", func() error {
		spec, err := source.Desired(deadline(t))
		if err == nil && spec.Name != "new" {
			err = fmt.Errorf("the source names %+v", spec)
		}
		return err
	})
	n = w.calls.Load()
	must(t, c.all.Resource(v1alpha1.NodeConfigsResource).Delete(deadline(t), c.node, metav1.DeleteOptions{}))
	w.more(t, n, "the end of the object")
	if _, err := source.Desired(deadline(t)); !errors.Is(err, configsync.ErrMissing) {
		t.Errorf("got %v for an object that is gone, want it missing", err)
	}
}

// TestNewsOfANodeAreWrittenUnread: a condition that differs from the last report is written at once, whatever the kubelet has written since; that nothing is to be
// written is said of what was read; and a Node that was registered again is not taken for the one before. R-CS-70, R-CS-73.
func TestNewsOfANodeAreWrittenUnread(t *testing.T) {
	c := newCluster(t)
	k := &calls{}
	r, err := kube.NewNodeConditionReporter(k.client(t, c), c.node, kube.Options{})
	must(t, err)
	must(t, r.Report(deadline(t), statusOK(time.Time{})))
	k.were(t, "the first report", "GET nodes", "PATCH nodes/status")
	kubelet := `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`
	_, err = c.admin.CoreV1().Nodes().Patch(deadline(t), c.node, types.StrategicMergePatchType, []byte(kubelet), metav1.PatchOptions{}, "status")
	must(t, err)
	must(t, r.Report(deadline(t), statusUnclear(time.Time{})))
	k.were(t, "news", "PATCH nodes/status")
	must(t, r.Report(deadline(t), statusUnclear(time.Time{})))
	k.were(t, "no news", "GET nodes")
	conditions := func() (reasons string) {
		t.Helper()
		node, err := c.admin.CoreV1().Nodes().Get(deadline(t), c.node, metav1.GetOptions{})
		must(t, err)
		for _, cond := range node.Status.Conditions {
			reasons += string(cond.Type) + "=" + string(cond.Status) + " "
		}
		return reasons
	}
	if got := conditions(); got != "Ready=True ConfigOK=Unknown " && got != "ConfigOK=Unknown Ready=True " {
		t.Errorf("the Node has the conditions %q, want the kubelet's and the report", got)
	}
	must(t, c.admin.CoreV1().Nodes().Delete(deadline(t), c.node, metav1.DeleteOptions{}))
	if err := r.Report(deadline(t), statusOK(time.Time{})); !errors.Is(err, configsync.ErrMissing) {
		t.Errorf("got %v for a Node that is gone, want it missing", err)
	}
	must(t, again(deadline(t), c))
	must(t, r.Report(deadline(t), statusOK(time.Time{})))
	k.take()
	must(t, c.admin.CoreV1().Nodes().Delete(deadline(t), c.node, metav1.DeleteOptions{}))
	must(t, again(deadline(t), c))
	must(t, r.Report(deadline(t), statusUnclear(time.Time{})))
	k.were(t, "a Node that was registered again", "PATCH nodes/status", "GET nodes", "PATCH nodes/status")
	if got := conditions(); got != "ConfigOK=Unknown " {
		t.Errorf("the new Node has the conditions %q, want the report", got)
	}
}

// again registers the Node of a cluster again.
func again(ctx context.Context, c *cluster) error {
	_, err := c.admin.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.node}}, metav1.CreateOptions{})
	return err
}

// heard is a source that tells when its watch has said for the first time that something may have changed: a node looks again then.
type heard struct {
	*kube.NodeConfigSource
	once  sync.Once
	first chan struct{}
}

// Watch closes first once the node has been told.
func (h *heard) Watch(ctx context.Context, changed func()) error {
	return h.NodeConfigSource.Watch(ctx, func() {
		changed()
		h.once.Do(func() { close(h.first) })
	})
}

// await waits until the node has been told.
func (h *heard) await(t *testing.T) {
	t.Helper()
	select {
	case <-h.first:
	case <-time.After(time.Minute):
		t.Fatal("the watch of the source brought nothing within a minute")
	}
}

// TestAdoptionTakesThreeCalls: a live node that is assigned a config gets it, and reports once to each object that it reports to.
func TestAdoptionTakesThreeCalls(t *testing.T) {
	c := newCluster(t)
	must(t, c.assignNodeConfig(deadline(t), ""))
	k := &calls{}
	c.client = k.client(t, c)
	source, err := kube.NewNodeConfigSource(c.client, c.node, kube.Options{})
	must(t, err)
	condition, err := kube.NewNodeConditionReporter(c.client, c.node, kube.Options{})
	must(t, err)
	watched := &heard{NodeConfigSource: source, first: make(chan struct{})}
	n := c.liveWith(t, watched, func(_ *liveNode, o *configsync.Options[entry]) { o.ProbeInterval = time.Hour }, source.StatusReporter(), condition)
	eventually(t, "the first reports", func() error {
		if s := c.nodeConfig(t).Status; s.Active == nil || s.Active.Local == "" {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	watched.await(t) // else what the node asks after the watch's first news may count as the adoption's
	for i, p := range []matrix.Payload{matrix.GoodA, matrix.GoodB} {
		settled(t, k)
		ref, err := c.Create(deadline(t), matrix.ConfigMap{Name: fmt.Sprint("v", i), Immutable: true, Payloads: map[string]matrix.Payload{matrix.Key: p}})
		must(t, err)
		ref.Digest = ""
		must(t, c.assignNodeConfig(deadline(t), ref.Source()))
		eventually(t, "the adoption", func() error {
			if got := c.nodeConfig(t).Status.Active; got.ConfigMapRef == nil || got.ConfigMapRef.UID != ref.UID {
				return fmt.Errorf("active is %+v; %+v", got, n.syncer.Status())
			}
			return nil
		})
		k.await(t, "PATCH nodes/status") // the last of them; what settles after it would be too much
		got := map[string]int{}
		for _, call := range settled(t, k) {
			got[call]++
		}
		if want := map[string]int{"GET configmaps": 1, "PATCH nodeconfigs/status": 1, "PATCH nodes/status": 1}; !reflect.DeepEqual(got, want) {
			t.Errorf("adoption %d took %v, want %v", i, got, want)
		}
	}
}

// settled waits until no call comes for a while, and returns those that came.
func settled(t *testing.T, k *calls) (all []string) {
	t.Helper()
	eventually(t, "the last call", func() error {
		<-time.After(300 * time.Millisecond)
		if more := k.take(); len(more) > 0 {
			all = append(all, more...)
			return fmt.Errorf("there were %q", more)
		}
		return nil
	})
	return all
}
