// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/examples/internal/e2e"
)

// annotate changes an annotation of a pod.
func (w *world) annotate(t *testing.T, pod, key, value string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err == nil {
		_, err = w.client.CoreV1().Pods(w.namespace).Patch(t.Context(), pod, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// request waits until a pod has, or has not, been asked to evacuate, and returns what it was asked.
func (w *world) request(t *testing.T, pod string, wanted bool) string {
	t.Helper()
	var p *corev1.Pod
	e2e.Eventually(t, settled, "the request to the pod", func() (err error) {
		p, err = w.client.CoreV1().Pods(w.namespace).Get(t.Context(), pod, metav1.GetOptions{})
		if _, ok := p.GetAnnotations()[kube.RequestAnnotation]; err == nil && ok != wanted {
			err = fmt.Errorf("a request is there: %v, want %v", ok, wanted)
		}
		return err
	})
	return p.Annotations[kube.RequestAnnotation]
}

// hooked makes a node with a pod, which it names, that asks for the responder "migrate".
func (w *world) hooked(t *testing.T) (node, pod string) {
	t.Helper()
	node = w.node(t, "1")
	w.app(t, "vm", 1)
	pod = w.pods(t, node)[0]
	w.annotate(t, pod, drain.HookAnnotation, "migrate")
	_ = w.node(t, "2")
	return node, pod
}

// R-DR-15: a pod that asks for a responder stays until it is named, and the plan, the progress and the end say by which flag; then it is
// asked, is not evicted while it evacuates itself, and is evicted when it is done.
func TestResponderIsNamedByAFlag(t *testing.T) {
	w := newWorld(t)
	n1, vm := w.hooked(t)
	const hint = `there is no responder "migrate"; --responder=migrate asks the pod to evacuate itself`
	for _, args := range [][]string{{"plan", n1}, {n1, "--timeout=3s"}, {n1, "--timeout=3s", "--responder=other"}} {
		p := w.drain(t, args...)
		p.ends(t, exitBlocked)
		p.says(t, "InvalidBehavior", hint)
	}
	w.request(t, vm, false)
	w.drain(t, "plan", n1, "--responder=migrate").ends(t, exitDone)

	p := w.drain(t, n1, "--settle=0s", "--responder=other,migrate")
	p.until(t, `responder "migrate"`)
	if got := w.request(t, vm, true); !strings.Contains(got, `"responder":"migrate"`) {
		t.Errorf("the pod was asked %s, want it asked by the name of its responder", got)
	}
	w.annotate(t, vm, "drain.belay.dev/evacuation", `{"responder":"migrate","progress":"Working","beat":"1","message":"half way"}`)
	e2e.Throughout(t, 3*time.Second, "a pod stays while it evacuates itself", func() error {
		if left := w.pods(t, n1); len(left) != 1 || left[0] != vm {
			return fmt.Errorf("on the node are %q, want %s", left, vm)
		}
		return nil
	})
	w.annotate(t, vm, "drain.belay.dev/evacuation", `{"responder":"migrate","progress":"Done","beat":"2"}`)
	p.ends(t, exitDone)
	p.says(t, "evicted "+w.namespace+"/"+vm)
}

// R-DR-15, R-DR-17: an interrupted drain takes its request back, and so does a release after one that was killed, which needs no names.
func TestRequestToAPodIsTakenBack(t *testing.T) {
	w := newWorld(t)
	n1, vm := w.hooked(t)
	p := w.drain(t, n1, "--responder=migrate")
	w.request(t, vm, true)
	p.interrupt(t)
	p.ends(t, exitInterrupted)
	w.request(t, vm, false)

	p = w.drain(t, n1, "--responder=migrate")
	w.request(t, vm, true)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.done
	w.drain(t, "release", n1).ends(t, exitDone)
	w.request(t, vm, false)
	w.asFound(t, n1, false)
}
