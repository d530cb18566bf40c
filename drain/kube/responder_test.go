// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// conversation is one pod and a responder that sees it.
type conversation struct {
	*cluster
	cache     *kube.Cache
	responder drain.Responder
	writes    atomic.Int32
	request   drain.HookRequest
}

func newConversation(t *testing.T) *conversation {
	t.Helper()
	c := &conversation{cluster: newCluster(t)}
	pod := c.runs(t, "vm", c.namespace)
	config := through(c.env.Config(), func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		c.writes.Add(1)
		return next.RoundTrip(r)
	})
	c.cache = syncedCache(t, c.env.Config(), kube.CacheOptions{})
	var err error
	c.responder, err = kube.NewAnnotationResponder(clientset(t, config), c.cache.View(), kube.Options{})
	must(t, err)
	c.request = drain.HookRequest{Pod: refTo(pod), Node: c.namespace, Holder: "h", Maintenance: "m", Responder: "migrate"}
	return c
}

// annotation is what the API server has, nil for none.
func (c *conversation) annotation(t *testing.T, key string) *string {
	t.Helper()
	pod, err := c.admin.CoreV1().Pods(c.namespace).Get(t.Context(), "vm", metav1.GetOptions{})
	must(t, err)
	if value, ok := pod.Annotations[key]; ok {
		return &value
	}
	return nil
}

// says sets the pod's answer, and waits until the cache has it.
func (c *conversation) says(t *testing.T, answer string) {
	t.Helper()
	c.annotate(t, "drain.belay.dev/evacuation", answer)
	c.sees(t, func(pod *corev1.Pod) bool {
		said, ok := pod.Annotations["drain.belay.dev/evacuation"]
		return ok && said == answer
	})
}

func (c *conversation) annotate(t *testing.T, key, value string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	must(t, err)
	_, err = c.admin.CoreV1().Pods(c.namespace).Patch(t.Context(), "vm", types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
}

// sees waits until the cache has a pod like that.
func (c *conversation) sees(t *testing.T, like func(*corev1.Pod) bool) {
	t.Helper()
	eventually(t, func() string {
		if pod := c.cache.View().Pod(c.namespace, "vm"); pod == nil || !like(pod) {
			return fmt.Sprintf("the cache has %v", pod)
		}
		return ""
	})
}

func (c *conversation) seesRequest(t *testing.T) {
	t.Helper()
	c.sees(t, func(pod *corev1.Pod) bool { return pod.Annotations[kube.RequestAnnotation] != "" })
}

// answered responds and compares.
func (c *conversation) answered(t *testing.T, want drain.HookAnswer) {
	t.Helper()
	if got, err := c.responder.Respond(t.Context(), c.request); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// TestPodEvacuatesItself goes through a whole conversation: one write to ask, none to look, one to take it back. R-DR-15.
func TestPodEvacuatesItself(t *testing.T) {
	c := newConversation(t)
	asked := drain.HookAnswer{Progress: drain.HookAsked}
	c.answered(t, asked)
	if got := c.annotation(t, kube.RequestAnnotation); got == nil || *got != `{"holder":"h","maintenance":"m","responder":"migrate"}` {
		t.Errorf("got the request %v", got)
	}
	c.seesRequest(t)
	c.answered(t, asked)
	c.says(t, `{"responder":"another","progress":"Done"}`)
	c.answered(t, asked)
	c.says(t, `{"responder":"migrate","progress":"Working","beat":"1","message":"copying","more":true}`)
	c.answered(t, drain.HookAnswer{Progress: drain.HookWorking, Beat: "1", Message: "copying"})
	c.says(t, `{"responder":"migrate","progress":"Done","beat":"2"}`)
	c.answered(t, drain.HookAnswer{Progress: drain.HookDone, Beat: "2"})
	c.says(t, `{"responder":"migrate","progress":"Declined"}`)
	c.answered(t, drain.HookAnswer{Progress: drain.HookDeclined})
	if got := c.writes.Load(); got != 1 {
		t.Errorf("got %d requests, want one", got)
	}
	for range 2 {
		must(t, c.responder.Cancel(t.Context(), c.request))
	}
	if got := c.annotation(t, kube.RequestAnnotation); got != nil {
		t.Errorf("got the request %s, want none", *got)
	}
}

// TestOldAnswersCountForNothing shows that the answer to an earlier request, or to another responder, lets no pod be evicted. R-DR-15.
func TestOldAnswersCountForNothing(t *testing.T) {
	for name, change := range map[string]func(*drain.HookRequest){
		"called off":          func(*drain.HookRequest) {},
		"another maintenance": func(r *drain.HookRequest) { r.Maintenance = "m2" },
		"another responder":   func(r *drain.HookRequest) { r.Responder = "copy" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConversation(t)
			if name == "called off" {
				c.says(t, `{"responder":"migrate","progress":"Done"}`)
			} else {
				c.answered(t, drain.HookAnswer{Progress: drain.HookAsked})
				c.says(t, `{"responder":"migrate","progress":"Done"}`)
				c.seesRequest(t)
			}
			change(&c.request)
			c.answered(t, drain.HookAnswer{Progress: drain.HookAsked})
			if got := c.annotation(t, "drain.belay.dev/evacuation"); got != nil {
				t.Errorf("got the answer %s, want none", *got)
			}
			c.sees(t, func(pod *corev1.Pod) bool { return pod.Annotations["drain.belay.dev/evacuation"] == "" })
			c.answered(t, drain.HookAnswer{Progress: drain.HookAsked})
			if got := c.annotation(t, kube.RequestAnnotation); got == nil || !strings.Contains(*got, c.request.Maintenance+`","responder":"`+c.request.Responder) {
				t.Errorf("got the request %v, want the new one", got)
			}
		})
	}
}

// lagging is a cache that stands still.
type lagging struct {
	drain.Cache
	pod *corev1.Pod
}

func (l lagging) Pod(string, string) *corev1.Pod { return l.pod }

// TestLaggingCacheRemovesNoAnswer shows that a request that the cache doesn't show yet isn't made again over the pod's answer.
func TestLaggingCacheRemovesNoAnswer(t *testing.T) {
	c := newConversation(t)
	responder, err := kube.NewAnnotationResponder(c.admin, lagging{c.cache.View(), c.cache.View().Pod(c.namespace, "vm")}, kube.Options{})
	must(t, err)
	c.responder = responder
	c.answered(t, drain.HookAnswer{Progress: drain.HookAsked})
	c.annotate(t, "drain.belay.dev/evacuation", "{}")
	c.answered(t, drain.HookAnswer{Progress: drain.HookAsked})
	if c.annotation(t, "drain.belay.dev/evacuation") == nil {
		t.Error("the answer is gone")
	}
}

// TestTwoHoldersAskOnce shows that the request of another holder to the same responder is enough, and is not taken back.
func TestTwoHoldersAskOnce(t *testing.T) {
	c := newConversation(t)
	c.answered(t, drain.HookAnswer{Progress: drain.HookAsked})
	c.seesRequest(t)
	c.request.Holder = "h2"
	c.says(t, `{"responder":"migrate","progress":"Done"}`)
	c.answered(t, drain.HookAnswer{Progress: drain.HookDone})
	must(t, c.responder.Cancel(t.Context(), c.request))
	if got := c.annotation(t, kube.RequestAnnotation); got == nil || !strings.Contains(*got, `"holder":"h"`) || c.writes.Load() != 1 {
		t.Errorf("got the request %v after %d requests, want that of the first", got, c.writes.Load())
	}
	c.request.Responder = "copy"
	c.answered(t, drain.HookAnswer{Progress: drain.HookAsked})
	if got := c.annotation(t, kube.RequestAnnotation); got == nil || !strings.Contains(*got, `"holder":"h2"`) {
		t.Errorf("got the request %v, want that for another responder", got)
	}
}

// TestBadAnswersNameTheirAnnotation shows the error that an operator gets to see, and that long messages are cut.
func TestBadAnswersNameTheirAnnotation(t *testing.T) {
	c := newConversation(t)
	c.answered(t, drain.HookAnswer{Progress: drain.HookAsked})
	c.seesRequest(t)
	for _, bad := range []string{"", "done", "[]", `{"responder":1}`, `{"responder":"migrate"}`, `{"responder":"migrate","progress":"Asked"}`} {
		c.says(t, bad)
		got, err := c.responder.Respond(t.Context(), c.request)
		var malformed *kube.AnswerError
		if !errors.As(err, &malformed) || malformed.Pod != c.request.Pod || !strings.Contains(err.Error(), `"`+"drain.belay.dev/evacuation"+`" of pod "`+c.namespace+`/vm"`) {
			t.Errorf("%s: got %v, want an AnswerError that names the annotation and the pod", bad, err)
		}
		if got != (drain.HookAnswer{}) {
			t.Errorf("%s: got %+v beside the error", bad, got)
		}
	}
	c.says(t, `{"responder":"migrate","progress":"Working","message":"`+strings.Repeat("x", 1024+1)+`"}`)
	if got, err := c.responder.Respond(t.Context(), c.request); err != nil || len(got.Message) != 1024 {
		t.Errorf("got a message of %d bytes, %v, want %d", len(got.Message), err, 1024)
	}
}

// TestAnotherPodIsNotAsked shows that a pod of the same name with another UID is neither asked nor answered for.
func TestAnotherPodIsNotAsked(t *testing.T) {
	c := newConversation(t)
	c.request.Pod.UID = "another"
	if _, err := c.responder.Respond(t.Context(), c.request); !errors.Is(err, kube.ErrPodGone) {
		t.Errorf("got %v, want %v", err, kube.ErrPodGone)
	}
	c.annotate(t, kube.RequestAnnotation, `{"holder":"h"}`)
	must(t, c.responder.Cancel(t.Context(), c.request))
	if c.annotation(t, kube.RequestAnnotation) == nil {
		t.Error("the request of the other pod is gone")
	}
	c.request.Pod.Name = "none"
	must(t, c.responder.Cancel(t.Context(), c.request))
	for _, bad := range []func() error{
		func() error { _, err := kube.NewAnnotationResponder(nil, c.cache.View(), kube.Options{}); return err },
		func() error { _, err := kube.NewAnnotationResponder(c.admin, nil, kube.Options{}); return err },
	} {
		if err := bad(); err == nil || !strings.Contains(err.Error(), " is required (") {
			t.Errorf("got %v, want it to say what is missing", err)
		}
	}
}
