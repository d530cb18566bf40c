// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/internal/evictionapi"
)

func noneAllowed(s *policyv1.PodDisruptionBudgetStatus) { s.DisruptionsAllowed = 0 }

// TestEvictionRequests runs the cases on one control plane with the feature gate on.
func TestEvictionRequests(t *testing.T) {
	env := gatedEnv(t)
	for name, test := range map[string]func(*testing.T, *evictionWorld){
		"a pod waits for its responders":         testPodWaits,
		"no controller":                          testNoController,
		"a crash in between":                     testRequestCrash,
		"two holders":                            testTwoHolders,
		"a finalizer keeps a withdrawn request":  testFinalizer,
		"a failed request":                       testFailedRequest,
		"a protected pod is not asked for":       testProtectedPod,
		"a rule leaves the responders out":       testRuleEvicts,
		"the rights of the manifest":             testRights,
		"many pods of a node share the requests": testManyPods,
		"a request of before that was withdrawn": testWithdrawnBefore,
		"a deletion counts from the request":     testDeletionAfterRequest,
	} {
		t.Run(name, func(t *testing.T) { test(t, newEvictionWorld(t, env)) })
	}
}

// A pod with spec.evictionResponders stays until they are done; another pod leaves at once. One request each is made.
func testPodWaits(t *testing.T, w *evictionWorld) {
	vm := w.pod(t, "vm", migrate, shutdown)
	w.pod(t, "app")
	d, r := w.open(t), w.request("test")
	plan, err := d.Plan(t.Context(), r.Policy, w.node)
	must(t, err)
	for _, p := range plan.Nodes[0].Pods {
		if want := map[string]drain.Action{"vm": drain.Hook, "app": drain.Evict}[p.Name]; p.Action != want {
			t.Errorf("plan of pod %q: %s, want %s", p.Name, p.Action, want)
		}
	}
	w.until(t, d, r, time.Second, waitsWith("vm", "no evictionrequest-controller has observed"))
	request := w.onlyRequest(t)
	pod := request.Spec.Target.Pod
	if request.Spec.Requester != "belay.dev/drain" || request.Spec.Intent != "Eviction" || pod == nil ||
		*pod != (evictionapi.PodReference{Name: "vm", UID: vm.UID}) ||
		len(request.OwnerReferences) != 1 || request.OwnerReferences[0].UID != vm.UID {
		t.Errorf("the EvictionRequest is %+v", request)
	}
	w.observe(t, request, "", "")
	eviction := w.says(t, w.evict(t, vm, migrate, shutdown), 0, "40 %")
	w.until(t, d, r, time.Second, waitsWith("vm", migrate+": 40 %"))
	for range 3 { // signs of life keep it waiting, for longer than one may be silent
		eviction = w.says(t, eviction, 0, eviction.ResourceVersion)
		w.until(t, d, r, 10*time.Second, waitsWith("vm", *eviction.Status.Responders[0].Message))
		w.passes(20 * time.Minute)
	}
	w.completes(t, eviction, 0)
	w.until(t, d, r, 10*time.Second, waitsWith("vm", shutdown))
	if n := w.sent("POST", "pods/vm/eviction"); n != 0 {
		t.Errorf("%d evictions of the pod before its responders are done, want none", n)
	}
	current := w.currentEviction(t, vm)
	w.completes(t, current, 1)
	st := w.until(t, d, r, 10*time.Second, isDrained)
	if len(st.Evicted) != 2 {
		t.Errorf("evicted: %v, want both pods", st.Evicted)
	}
	for want, parts := range map[[2]string]int{
		{"POST", "/evictionrequests"}: 1, {"POST", "/vm/eviction"}: 1, {"POST", "/app/eviction"}: 1,
		{"/pods raw", ""}: 1, {"GET", "/apis/lifecycle.k8s.io/v1alpha1 "}: 0,
	} {
		if n := w.sent(want[0], want[1]); n != parts {
			t.Errorf("%d requests with %q, want %d: %q", n, want, parts, w.requests)
		}
	}
}

// Without a controller the pod is evicted after 30 seconds, and the status says why.
func testNoController(t *testing.T, w *evictionWorld) {
	w.pod(t, "vm", migrate)
	w.guards(t, "vm", "vm", noneAllowed)
	d, r := w.open(t), w.request("test")
	begin := w.clock()
	w.until(t, d, r, 5*time.Second, func(st drain.Status) string {
		if w.sent("POST", "vm/eviction") == 0 {
			if w.clock().After(begin.Add(2 * time.Minute)) {
				return "want an eviction"
			}
			return waitsWith("vm", "is evicted after 30s")(st) + "want an eviction"
		}
		if len(st.Blockers) != 1 || !strings.Contains(st.Blockers[0].Message, "within 30s") {
			return "want the reason why the request is not waited for"
		}
		return ""
	})
	if passed := w.clock().Sub(begin); passed < 30*time.Second {
		t.Errorf("evicted after %s, want at least 30 s", passed)
	}
	if left := w.evictionRequests(t); len(left) != 0 { // a controller that comes later would evict beside the drain
		t.Errorf("%d EvictionRequests are left, want none: the drain goes on without", len(left))
	}
}

// A process that dies after its request is followed by one that goes on with it.
func testRequestCrash(t *testing.T, w *evictionWorld) {
	vm := w.pod(t, "vm", migrate)
	r := w.request("test")
	w.until(t, w.open(t), r, time.Second, waitsWith("vm", "observed"))
	before := w.onlyRequest(t)
	w.observe(t, before, "", "")
	eviction := w.evict(t, vm, migrate)
	w.passes(time.Hour)
	d := w.open(t)
	w.until(t, d, r, time.Second, waitsWith("vm", migrate))
	if after := w.onlyRequest(t); after.UID != before.UID || after.Generation != before.Generation {
		t.Errorf("the request is another one after the crash: %+v, want %+v", after, before)
	}
	if n := w.sent("POST", "/evictionrequests"); n != 1 {
		t.Errorf("%d requests were made, want 1", n)
	}
	w.completes(t, eviction, 0)
	w.until(t, d, r, 10*time.Second, isDrained)
}

// Each holder has its own request. The one that gives up takes its own back alone, also by a later process.
func testTwoHolders(t *testing.T, w *evictionWorld) {
	w.pod(t, "vm", migrate)
	d, one, two := w.open(t), w.request("one"), w.request("two")
	w.until(t, d, one, time.Second, waitsWith("vm", "observed"))
	w.until(t, w.open(t), two, time.Second, waitsWith("vm", "observed"))
	if all := w.evictionRequests(t); len(all) != 2 {
		t.Fatalf("%d EvictionRequests, want one of each holder: %+v", len(all), all)
	}
	one.Mode = drain.Release
	w.until(t, w.open(t), one, time.Second, func(st drain.Status) string {
		if st.Phase != drain.Released {
			return "want the node released"
		}
		return ""
	})
	left := w.onlyRequest(t)
	if left.Annotations["drain.belay.dev/holder"] != "two" || left.Spec.Intent != "Eviction" {
		t.Errorf("left: %+v, want the request of the other holder as it was", left)
	}
	two.Mode = drain.Release
	w.until(t, w.open(t), two, time.Second, func(drain.Status) string {
		if n := len(w.evictionRequests(t)); n != 0 {
			return fmt.Sprintf("%d EvictionRequests left", n)
		}
		return ""
	})
}

// A request that a finalizer keeps says that it is withdrawn.
func testFinalizer(t *testing.T, w *evictionWorld) {
	w.pod(t, "vm", migrate)
	d, r := w.open(t), w.request("test")
	w.until(t, d, r, time.Second, waitsWith("vm", "observed"))
	requests := w.objects.Resource(evictionapi.RequestsResource()).Namespace(w.namespace)
	object, err := requests.Get(t.Context(), w.onlyRequest(t).Name, metav1.GetOptions{})
	must(t, err)
	object.SetFinalizers([]string{"example.com/keep"})
	_, err = requests.Update(t.Context(), object, metav1.UpdateOptions{})
	must(t, err)
	r.Mode = drain.Release
	w.until(t, d, r, time.Second, func(st drain.Status) string {
		if st.Phase != drain.Released {
			return "want the node released"
		}
		return ""
	})
	if left := w.onlyRequest(t); left.Spec.Intent != "Withdrawn" || left.DeletionTimestamp == nil {
		t.Errorf("left: %+v, want it withdrawn and deleted", left)
	}
}

// A request that has failed is not waited for.
func testFailedRequest(t *testing.T, w *evictionWorld) {
	w.pod(t, "vm", migrate)
	d, r := w.open(t), w.request("test")
	w.until(t, d, r, time.Second, waitsWith("vm", "observed"))
	w.observe(t, w.onlyRequest(t), "Failed", "NoFurtherResponder")
	w.until(t, d, r, 10*time.Second, isDrained)
	if n := w.sent("POST", "vm/eviction"); n != 1 {
		t.Errorf("%d evictions, want 1", n)
	}
}

// A pod that the policy protects is not shown to its responders, after which others would evict it.
func testProtectedPod(t *testing.T, w *evictionWorld) {
	r := w.request("test")
	w.podWithoutOwner(t, "alone", migrate)
	r.Policy.Unmanaged = ""
	w.until(t, w.open(t), r, time.Second, func(st drain.Status) string {
		if len(st.Blockers) != 1 || st.Blockers[0].Reason != drain.Unmanaged {
			return "want the pod blocked as it has no controller"
		}
		return ""
	})
	if all := w.evictionRequests(t); len(all) != 0 {
		t.Errorf("EvictionRequests: %+v, want none", all)
	}
}

// A rule that says Evict stands above what the pod says.
func testRuleEvicts(t *testing.T, w *evictionWorld) {
	w.pod(t, "vm", migrate)
	r := w.request("test")
	r.Policy.Rules = []drain.Rule{{Name: "all", Behavior: drain.BehaviorEvict}}
	w.until(t, w.open(t), r, time.Second, isDrained)
	if all := w.evictionRequests(t); len(all) != 0 || w.sent("POST", "/evictionrequests") != 0 {
		t.Errorf("EvictionRequests: %+v, want none", all)
	}
}

// Each right of the manifest is enough and needed. Where one is missing, the answer names it.
func testRights(t *testing.T, w *evictionWorld) {
	rights := []right{{}}
	for _, verb := range []string{"create", "get", "list", "patch", "delete"} {
		rights = append(rights, right{"lifecycle.k8s.io", "evictionrequests", verb})
	}
	rights = append(rights, right{"lifecycle.k8s.io", "evictions", "list"}, right{"", "pods", "list"})
	manifest := string(kube.RBAC())
	for _, r := range rights[1:] {
		if !strings.Contains(manifest, "["+r.resource+"]") || !strings.Contains(manifest, r.verb) {
			t.Errorf("the manifest has no right to %s %s", r.verb, r.resource)
		}
	}
	for n, missing := range rights {
		vm := w.pod(t, fmt.Sprintf("vm-%d", n), migrate)
		user := fmt.Sprintf("%s-%d", w.namespace, n)
		var rules []rbacv1.PolicyRule
		for _, r := range rights[1:] {
			if r != missing {
				rules = append(rules, r.rule())
			}
		}
		w.allow(t, user, rules...)
		config := w.env.User(t, user)
		eventually(t, func() string {
			got := w.useRights(t, config, refTo(vm))
			if missing == (right{}) && got != "" || missing != (right{}) && !strings.Contains(got, missing.denial()) {
				return fmt.Sprintf("without %v, got %q, want it named", missing, got)
			}
			return ""
		})
	}
}

// useRights makes a request, finds it again without its label, and takes it back. It returns what was denied.
func (w *evictionWorld) useRights(t *testing.T, config *rest.Config, pod drain.PodRef) (denials string) {
	t.Helper()
	request := drain.HookRequest{Pod: pod, Node: w.node, Holder: "test"}
	requests := w.objects.Resource(evictionapi.RequestsResource()).Namespace(w.namespace)
	for range 2 {
		requester, err := kube.NewEvictionRequester(config, nil, kube.Options{})
		must(t, err)
		answer, err := requester.Respond(t.Context(), request)
		if denials += fmt.Sprintln(answer.Message); err != nil {
			denials += err.Error()
		}
		for _, r := range w.evictionRequests(t) {
			patch := []byte(`{"metadata":{"labels":null}}`)
			_, err := requests.Patch(t.Context(), r.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			must(t, err)
		}
		if _, err := requester.FindPods(t.Context(), w.node, []drain.PodRef{pod}); err != nil {
			denials += err.Error()
		}
	}
	requester, err := kube.NewEvictionRequester(config, nil, kube.Options{})
	must(t, err)
	if err := requester.Cancel(t.Context(), request); err != nil {
		denials += err.Error()
	}
	for _, line := range strings.Split(denials, "\n") {
		if strings.Contains(line, "cannot ") {
			return denials
		}
	}
	return ""
}

// All pods of a node are found by one list, and asked about by a few.
func testManyPods(t *testing.T, w *evictionWorld) {
	const n = 12
	for i := range n {
		w.pod(t, fmt.Sprintf("vm-%d", i), migrate)
	}
	d, r := w.open(t), w.request("test")
	w.until(t, d, r, 0, func(st drain.Status) string {
		for _, b := range st.Blockers {
			if !strings.Contains(b.Message, "observed") {
				return "want all pods asked about"
			}
		}
		if len(st.Blockers) != n {
			return "want all pods"
		}
		return ""
	})
	for range 5 {
		w.until(t, d, r, 4*time.Second, func(drain.Status) string { return "" })
	}
	if made := w.sent("POST", "/evictionrequests"); made != n {
		t.Errorf("%d EvictionRequests were made for %d pods", made, n)
	}
	if raw := w.sent("/pods raw"); raw != 1 {
		t.Errorf("the node was listed %d times, want once", raw)
	}
	if lists := w.sent("GET", "/namespaces/"+w.namespace+"/eviction"); lists > 2*4 {
		t.Errorf("%d lists in 20 s, want at most 2 each 10 s", lists)
	}
}

// A withdrawn request that is still there gets its intent back, and what was said of it before does not count.
func testWithdrawnBefore(t *testing.T, w *evictionWorld) {
	w.pod(t, "vm", migrate)
	r := w.request("test")
	w.until(t, w.open(t), r, time.Second, waitsWith("vm", "observed"))
	requests := w.objects.Resource(evictionapi.RequestsResource()).Namespace(w.namespace)
	_, err := requests.Patch(t.Context(), w.onlyRequest(t).Name, types.MergePatchType,
		[]byte(`{"spec":{"intent":"Withdrawn"}}`), metav1.PatchOptions{})
	must(t, err)
	w.observe(t, w.onlyRequest(t), "Failed", "CanceledDueToNoRequesters")
	w.until(t, w.open(t), r, time.Second, waitsWith("vm", ""))
	if request := w.onlyRequest(t); request.Spec.Intent != "Eviction" || request.Generation != 3 {
		t.Errorf("got %+v, want its intent Eviction", request)
	}
	if n := w.sent("POST", "vm/eviction"); n != 0 {
		t.Errorf("%d evictions, want none", n)
	}
}

// A step that deletes comes after its time from the request, not from the start of the drain.
func testDeletionAfterRequest(t *testing.T, w *evictionWorld) {
	w.pod(t, "vm", migrate)
	w.guards(t, "vm", "vm", noneAllowed)
	d, r := w.open(t), w.request("test")
	r.Policy.Escalation = []drain.Escalation{{After: 5 * time.Minute, Step: drain.StepDelete}}
	w.passes(time.Second)
	w.until(t, d, r, time.Second, waitsWith("vm", "observed"))
	asked := w.clock()
	w.observe(t, w.onlyRequest(t), "Failed", "NoFurtherResponder")
	st := w.until(t, d, r, 10*time.Second, func(st drain.Status) string {
		if w.sent("POST", "vm/eviction") == 0 || len(st.Blockers) != 1 || st.Blockers[0].Next != drain.StepDelete {
			return "want an eviction, and the deletion announced"
		}
		return ""
	})
	at := st.Blockers[0].NextAt
	if at.Before(asked.Add(5*time.Minute-20*time.Second)) || at.After(asked.Add(6*time.Minute)) {
		t.Errorf("the deletion comes at %s, want 5 min after %s", at, asked)
	}
	w.until(t, d, r, 30*time.Second, isDrained)
}

// TestEvictionRequestsNotServed: a server without the API is asked once, and the drain is what it was.
func TestEvictionRequestsNotServed(t *testing.T) {
	c := newCluster(t)
	objects, err := dynamic.NewForConfig(c.env.Config())
	must(t, err)
	w := &evictionWorld{cluster: c, now: time.Now(), objects: objects, node: c.nodeWithPods(t)}
	t.Cleanup(c.playKubelet(t, w.node))
	w.pod(t, "vm", migrate)
	d, r := w.open(t), w.request("test")
	w.until(t, d, r, time.Second, isDrained)
	r.Mode = drain.Release
	_, _, err = d.ReconcileRequest(t.Context(), r)
	must(t, err)
	if n, all := w.sent("GET", "/apis/lifecycle.k8s.io"), w.sent("lifecycle.k8s.io"); n != 1 || all != 1 {
		t.Errorf("%d requests, %d of them GET, about the API, want 1", all, n)
	}
	if n := w.sent("/pods raw"); n != 0 {
		t.Errorf("pods were listed %d times for a field that is not kept", n)
	}
}
