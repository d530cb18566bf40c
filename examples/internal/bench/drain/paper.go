// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/belayproject/belay/drain"
)

const (
	paperNodes       = 1000
	paperPodsPerNode = 30
	paperNamespaces  = 100
	paperApps        = 10 // a namespace, each with a budget that allows nothing
)

// A paper is a large cluster that exists in memory only, and counts what is asked of it.
type paper struct {
	set  *fake.Clientset
	asks atomic.Int64
}

func newPaper() *paper {
	var objects []runtime.Object
	for i := range paperNodes {
		objects = append(objects, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: paperNode(i), UID: types.UID(fmt.Sprintf("node-%d", i)), ResourceVersion: "1"},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	for i := range paperNamespaces * paperApps {
		objects = append(objects, paperBudget(i))
	}
	set := fake.NewClientset(objects...)
	// The pods are made when they are listed: a process that drains does not hold what the server has.
	set.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for i := range paperNodes * paperPodsPerNode {
			list.Items = append(list.Items, *paperPod(i))
		}
		return true, list, nil
	})
	return &paper{set: set}
}

func paperNode(i int) string { return fmt.Sprintf("node-%04d", i) }

// paperHome gives the namespace and the app of a pod or a budget.
func paperHome(i int) (namespace, app string) {
	return fmt.Sprintf("team-%02d", i%paperNamespaces), fmt.Sprintf("app-%d", i/paperNamespaces%paperApps)
}

func paperBudget(i int) *policyv1.PodDisruptionBudget {
	namespace, app := paperHome(i)
	one, pods := intstr.FromInt32(1), int32(paperNodes*paperPodsPerNode/paperNamespaces/paperApps)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app, UID: types.UID(namespace + app), Generation: 1, ResourceVersion: "1"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 1, ExpectedPods: pods, CurrentHealthy: pods - 1, DesiredHealthy: pods - 1, DisruptionsAllowed: 0,
		},
	}
}

// paperMeta identifies a pod.
func paperMeta(i int) metav1.ObjectMeta {
	namespace, app := paperHome(i)
	return metav1.ObjectMeta{
		Namespace: namespace, Name: fmt.Sprintf("%s-7d9c8b6f5d-%05d", app, i),
		UID: types.UID(fmt.Sprintf("11111111-1111-4111-8111-%012d", i)),
	}
}

// paperPod is a pod as an API server sends it, with what a Deployment and a kubelet usually put there.
func paperPod(i int) *corev1.Pod {
	namespace, app := paperHome(i)
	yes := true
	now := metav1.NewTime(time.Unix(1_700_000_000, 0))
	condition := func(t corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now}
	}
	id := paperMeta(i)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: id.Name, GenerateName: app + "-7d9c8b6f5d-", ResourceVersion: "1",
			UID: id.UID, CreationTimestamp: now,
			Labels:          map[string]string{"app": app, "pod-template-hash": "7d9c8b6f5d", "app.kubernetes.io/part-of": namespace, "version": "v1.2.3"},
			Annotations:     map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9090", "checksum/config": fmt.Sprintf("%064d", i)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-7d9c8b6f5d", UID: types.UID(namespace + app), Controller: &yes, BlockOwnerDeletion: &yes}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &now, FieldsType: "FieldsV1", FieldsV1: paperFields(24)},
				{Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &now, FieldsType: "FieldsV1", FieldsV1: paperFields(16), Subresource: "status"},
			},
		},
		Spec: corev1.PodSpec{
			NodeName: paperNode(i % paperNodes), ServiceAccountName: app, SchedulerName: "default-scheduler", RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{paperContainer("main"), paperContainer("proxy")},
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: app}}}},
				{Name: "kube-api-access-abcde", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{}, {}, {}}}}},
			},
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, HostIP: "10.0.0.1", PodIP: "10.1.0.1", StartTime: &now, QOSClass: corev1.PodQOSBurstable,
			Conditions: []corev1.PodCondition{condition(corev1.PodScheduled), condition(corev1.PodInitialized), condition(corev1.ContainersReady), condition(corev1.PodReady)},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "main", Ready: true, Image: "registry.invalid/team/app:v1.2.3", ImageID: fmt.Sprintf("registry.invalid/team/app@sha256:%064d", i)},
				{Name: "proxy", Ready: true, Image: "registry.invalid/mesh/proxy:v1.9.0", ImageID: fmt.Sprintf("registry.invalid/mesh/proxy@sha256:%064d", i)},
			},
		},
	}
	return fresh(pod)
}

// fresh shares no memory with the pod, as one that was read from the wire.
func fresh(pod *corev1.Pod) *corev1.Pod {
	raw, err := json.Marshal(pod)
	out := &corev1.Pod{}
	if err != nil || json.Unmarshal(raw, out) != nil {
		return pod
	}
	return out
}

func paperFields(n int) *metav1.FieldsV1 {
	fields := map[string]any{}
	for i := range n {
		fields[fmt.Sprintf("f:field%d", i)] = map[string]any{".": map[string]any{}, "f:name": map[string]any{}, "f:value": map[string]any{}}
	}
	raw, _ := json.Marshal(map[string]any{"f:spec": fields}) // of maps and strings
	return metav1.NewFieldsV1(string(raw))
}

func paperContainer(name string) corev1.Container {
	c := corev1.Container{
		Name: name, Image: "registry.invalid/team/" + name + ":v1.2.3", ImagePullPolicy: corev1.PullIfNotPresent,
		Args:         []string{"--config=/etc/config/config.yaml", "--log-level=info", "--listen=:8080"},
		Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "metrics", ContainerPort: 9090}},
		VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/config"}, {Name: "kube-api-access-abcde", MountPath: "/var/run/secrets"}},
		LivenessProbe: &corev1.Probe{PeriodSeconds: 10, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")},
		}},
	}
	for i := range 8 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: "a value of usual length"})
	}
	return c
}

var _ drain.Client = (*paper)(nil)

// Evict refuses, as a server does whose budget is spent.
func (p *paper) Evict(context.Context, drain.PodRef, *int64) error {
	p.asks.Add(1)
	refusal := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	return refusal
}

// Delete is not asked for.
func (p *paper) Delete(context.Context, drain.PodRef, *int64) error {
	p.asks.Add(1)
	return errors.New("nothing is deleted here")
}

// PatchNode patches.
func (p *paper) PatchNode(ctx context.Context, name string, patch []byte, _ bool) (*corev1.Node, error) {
	p.asks.Add(1)
	return p.set.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
}

// GetNode is not asked for: no node is released.
func (p *paper) GetNode(context.Context, string) (*corev1.Node, error) {
	return nil, errors.ErrUnsupported
}

// ListPods names the pods of a node, which is what a plan compares with the cache. It costs little, so that the plan is
// measured and not the server.
func (p *paper) ListPods(_ context.Context, node string) ([]*corev1.Pod, error) {
	p.asks.Add(1)
	first, err := strconv.Atoi(strings.TrimPrefix(node, "node-"))
	if err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for i := first; i < paperNodes*paperPodsPerNode; i += paperNodes {
		pods = append(pods, &corev1.Pod{ObjectMeta: paperMeta(i)})
	}
	return pods, nil
}
