// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/internal/testenv"
)

// TestWholeControlPlaneRunsADeployment shows the controller manager, the scheduler and kwok each at its work.
func TestWholeControlPlaneRunsADeployment(t *testing.T) {
	env := testenv.Start(t, testenv.Options{With: []testenv.Component{
		testenv.ControllerManager, testenv.Scheduler, testenv.Kwok,
	}})
	ctx := deadline(t, 2*time.Minute)
	for _, name := range []string{"kwok-a", "kwok-b"} {
		if _, err := env.CreateNode(ctx, name, testenv.KwokNode); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := env.CreateNode(ctx, "ours"); err != nil {
		t.Fatal(err)
	}
	c, namespace := client(t, env.Config()), env.Namespace(t)
	deployment := deployment("web", 3)
	if _, err := c.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "three running pods", func() error {
		pods, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		if err == nil && len(pods.Items) != 3 {
			err = fmt.Errorf("%d pods run", len(pods.Items))
		}
		return err
	})
	ours, err := c.CoreV1().Nodes().Get(ctx, "ours", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range ours.Status.Conditions {
		if condition.Status == corev1.ConditionTrue {
			t.Errorf("kwok played a node that did not ask for it: condition %v", condition)
		}
	}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod(name).Spec}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
		},
	}
}

const crdTemplate = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.testenv.belay.dev}
spec:
  group: testenv.belay.dev
  scope: Namespaced
  names: {plural: PLURAL, singular: KIND, kind: KIND, listKind: KINDList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`

func crd(plural, kind string) []byte {
	return []byte(strings.NewReplacer("PLURAL", plural, "KIND", kind).Replace(crdTemplate))
}

func TestInstalledCRDsAreServedAtOnce(t *testing.T) {
	env, ctx := shared.Env(t), deadline(t, time.Minute)
	two := append(append(crd("widgets", "widget"), "\n---\n"...), crd("gadgets", "gadget")...)
	for range 2 { // the second finds them there
		if err := env.InstallCRDs(ctx, two, crd("gizmos", "gizmo")); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := dynamic.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	namespace := env.Namespace(t)
	for plural, kind := range map[string]string{"widgets": "widget", "gadgets": "gadget", "gizmos": "gizmo"} {
		resource := schema.GroupVersionResource{Group: "testenv.belay.dev", Version: "v1", Resource: plural}
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "testenv.belay.dev/v1", "kind": kind, "metadata": map[string]any{"name": "one"},
		}}
		if _, err := objects.Resource(resource).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			t.Errorf("creating a %s right after InstallCRDs: %v", kind, err)
		}
	}
}

func TestInstallCRDsRefusesOtherKinds(t *testing.T) {
	manifest := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
	err := shared.Env(t).InstallCRDs(deadline(t, time.Minute), manifest)
	if err == nil || !strings.Contains(err.Error(), `"ConfigMap"`) {
		t.Errorf("installing a ConfigMap: error %v, want one that names the kind", err)
	}
}
