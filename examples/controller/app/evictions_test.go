// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/examples/internal/e2e"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/binaries"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

const servesEvictions = "--eviction-requests"

// startEvictions starts a control plane with flags of its API server, and a controller that serves EvictionRequests.
func startEvictions(t *testing.T, flags ...string) (kubernetes.Interface, *replica, *testenv.Env) {
	t.Helper()
	env := testenv.Start(t, testenv.Options{
		AuditPolicy: auditPolicy, Args: map[testenv.Component][]string{testenv.APIServer: flags},
	})
	must(t, env.InstallCRDs(t.Context(), v1alpha1.CRDs()...))
	for _, path := range []string{"controller/rbac.yaml", "components/eviction-requests/rbac.yaml"} {
		e2e.Apply(t, env.Config(), "../../manifests/"+path)
	}
	core := kubernetes.NewForConfigOrDie(env.Config())
	mayBegin(t, core, authorizationv1.ResourceAttributes{
		Group: "lifecycle.k8s.io", Resource: "evictions", Verb: "create",
	})
	r := startWith(t, env, userConfig(t, env), func(c *exec.Cmd) { c.Args = append(c.Args, servesEvictions) })
	return core, r, env
}

// With the flag and the rights of the manifests, an EvictionRequest ends with its pod evicted. No request is denied.
func TestControllerServesEvictionRequests(t *testing.T) {
	t.Parallel()
	if shared.Env(t).Minor(t) < 37 {
		t.Log(binaries.ReleaseVariable, "selects a release without the API")
		return
	}
	core, r, env := startEvictions(t,
		"--feature-gates=EvictionRequestAPI=true", "--runtime-config=lifecycle.k8s.io/v1alpha1=true")
	r.awaits("leads", `belay_leader{name="eviction-requests"} 1`)
	none := int64(0)
	pod, err := core.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.PodSpec{
			NodeName: "n1", TerminationGracePeriodSeconds: &none,
			Containers: []corev1.Container{{Name: "main", Image: "none"}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	requests := core.LifecycleV1alpha1().EvictionRequests("default")
	request := &lifecyclev1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	request.Spec.Requester, request.Spec.Intent = "acme.io/a", lifecyclev1alpha1.EvictionRequestIntentEviction
	request.Spec.Target.Pod = &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod.Name, UID: pod.UID}
	_, err = requests.Create(t.Context(), request, metav1.CreateOptions{})
	must(t, err)
	must(t, testproc.Poll(patience, func() error {
		found, err := requests.Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && !meta.IsStatusConditionTrue(found.Status.Conditions, "TargetEvicted") {
			return fmt.Errorf("the conditions are %+v", found.Status.Conditions)
		}
		return err
	}))
	if lines := denied(t, env.AuditLog()); len(lines) > 0 {
		t.Errorf("%d requests were denied: %s", len(lines), lines[0])
	}
}

// Where the API is not served, the controller says so once, and does the rest of its work.
func TestControllerWithoutEvictionRequestAPI(t *testing.T) {
	t.Parallel()
	_, r, _ := startEvictions(t)
	must(t, testproc.Poll(patience, func() error {
		if !strings.Contains(r.log.String(), "does not serve EvictionRequests") {
			return errors.New("nothing is said")
		}
		return nil
	}))
	r.awaits("leads", `belay_leader{name="rollout-`)
	r.awaits("does not lead", `belay_leader{name="eviction-requests"} 0`)
	if n := strings.Count(r.log.String(), "does not serve EvictionRequests"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
}
