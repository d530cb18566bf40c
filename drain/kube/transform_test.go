// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testenv"

	"k8s.io/utils/ptr"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// slim is Transform of one object.
func slim[T any](t testing.TB, obj T) T {
	t.Helper()
	got, err := kube.Transform(obj)
	if err != nil {
		t.Fatal(err)
	}
	return got.(T)
}

// now is the time of these plans.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// bulky is a pod with all that servers and controllers add to one.
func bulky(n int) *corev1.Pod {
	name := fmt.Sprintf("app-7f3c5d9b8-%05d", n)
	env := []corev1.EnvVar{{Name: "LISTEN", Value: ":8080"}, {Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}}
	container := corev1.Container{
		Name: "main", Image: "registry.example.com/team/app@sha256:" + strings.Repeat("0123456789abcdef", 4), Args: []string{"--verbose", "--config=/etc/app/config.yaml"},
		Env: env, VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/secrets"}, {Name: "config", MountPath: "/etc/app", ReadOnly: true}},
		Resources:     corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}},
		LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}},
	}
	owned, err := testenv.FieldsV1(`{"f:x":"` + strings.Repeat("f", 1500) + `"}`)
	if err != nil {
		panic(err)
	}
	yes, started := true, metav1.NewTime(now.Add(-time.Hour))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "12345", GenerateName: "app-7f3c5d9b8-", CreationTimestamp: started,
			Labels:          map[string]string{"app": "app", "pod-template-hash": "7f3c5d9b8", "app.kubernetes.io/part-of": "shop"},
			Annotations:     map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 800), "prometheus.io/scrape": "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "app-7f3c5d9b8", UID: "owner", Controller: &yes}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: owned}},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1", RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: ptr.To(int64(30)), Priority: ptr.To(int32(0)), SchedulerName: "default-scheduler",
			Containers: []corev1.Container{container},
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To(int64(300))},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To(int64(300))},
			},
			Volumes: []corev1.Volume{
				{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}},
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}}}},
			},
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &started, PodIP: "10.0.0.1", HostIP: "10.1.0.1", QOSClass: corev1.PodQOSBurstable,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: started}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: started},
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", Ready: true, RestartCount: 3, Image: container.Image, ImageID: container.Image, ContainerID: "containerd://" + strings.Repeat("ab", 32),
				State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", Message: strings.Repeat("m", 200)}},
			}},
		},
	}
}

// oddities are the things by which a plan tells pods apart.
func oddities() []func(*corev1.Pod) {
	volume := func(source corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "odd", VolumeSource: source})
		}
	}
	mounted := func(readOnly bool) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", VolumeMounts: []corev1.VolumeMount{{Name: "odd", ReadOnly: readOnly}}}}
		}
	}
	owned := func(version, kind string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "odd", UID: "odd", Controller: ptr.To(true)}}
		}
	}
	annotated := func(key, value string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Annotations[key] = value } }
	return []func(*corev1.Pod){
		annotated(corev1.MirrorPodAnnotationKey, "x"), annotated(drain.HookAnnotation, "migrate"), annotated("drain.belay.dev/deadline", "3m"),
		func(p *corev1.Pod) { p.Labels["drain.belay.dev/behavior"] = string(drain.BehaviorWaitCompleted) },
		func(p *corev1.Pod) { p.OwnerReferences = nil },
		owned("apps/v1", "DaemonSet"), owned("v1", "Node"),
		func(p *corev1.Pod) { p.Spec.Priority = ptr.To(int32(1000)) },
		func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} },
		func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending },
		func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse },
		func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds, p.Finalizers = &metav1.Time{Time: now.Add(-time.Hour)}, ptr.To(int64(30)), []string{"example.com/x"}
		},
		volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
		volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("1Mi"))}}),
		volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "local"}}),
		volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}),
		volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}}),
		mounted(true), mounted(false),
	}
}

// TestTransformLeavesThePlanAsItIs makes odd pods at random, and shows that the plan for them is the same for what the cache keeps, under
// policies that look at everything. R-DR-18.
func TestTransformLeavesThePlanAsItIs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random, odd := rand.New(rand.NewPCG(seed, 0)), oddities() //nolint:gosec // for pods
	rules := []drain.Rule{{Name: "high", MinPriority: ptr.To(int32(500)), Behavior: drain.BehaviorHook, Hooks: []string{"copy"}}}
	policies := []drain.Policy{
		{}, {Removal: &drain.Removal{}, LocalDataLimit: 2 << 20}, {Volumes: true, LocalData: drain.EvictPods, Unmanaged: drain.EvictPods, Rules: rules},
		{DaemonSets: drain.LastDaemonSets, Tolerating: drain.EvictPods, DeleteFinished: true, Removal: &drain.Removal{}},
	}
	reasons := map[drain.Reason]int{}
	for range 100 {
		full := aSnapshot(t)
		kept := full
		view := full.Nodes[0]
		view.Pods, view.Node = nil, slim(t, view.Node)
		for n := range 20 {
			pod := bulky(n)
			for range random.IntN(4) {
				odd[random.IntN(len(odd))](pod)
			}
			full.Nodes[0].Pods, view.Pods = append(full.Nodes[0].Pods, pod), append(view.Pods, slim(t, pod))
		}
		kept.Nodes = []drain.NodeView{view}
		kept.Budgets = []*policyv1.PodDisruptionBudget{slim(t, full.Budgets[0])}
		for i, policy := range policies {
			want, got := drain.Plan(full, policy, now), drain.Plan(kept, policy, now)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("policy %d: got %+v, want %+v", i, got, want)
			}
			for _, pod := range want.Nodes[0].Pods {
				reasons[pod.Reason]++
			}
		}
	}
	if t.Logf("reasons: %v", reasons); len(reasons) < 9 {
		t.Errorf("got the reasons %v, want pods of more kinds", reasons)
	}
}

// aSnapshot has a node, a budget and a local volume, and no pods.
func aSnapshot(t *testing.T) drain.Snapshot {
	t.Helper()
	local := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
	local.Spec.Local = &corev1.LocalVolumeSource{Path: "/x"}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Annotations: map[string]string{"x": "y"}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "local"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}
	return drain.Snapshot{
		Nodes: []drain.NodeView{{Node: node, Started: now.Add(-time.Minute)}},
		Budgets: []*policyv1.PodDisruptionBudget{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "guard"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 5, ExpectedPods: 20, CurrentHealthy: 20, DesiredHealthy: 15},
		}},
		Claims:  map[types.NamespacedName]*corev1.PersistentVolumeClaim{{Namespace: "team-a", Name: "local"}: slim(t, claim)},
		Volumes: map[string]*corev1.PersistentVolume{"pv": slim(t, local)},
	}
}

// TestTransformDropsTheRest shows what is left of each kind, and that the object that came is as it was.
func TestTransformDropsTheRest(t *testing.T) {
	managed := metav1.ObjectMeta{
		Namespace: "ns", Name: "n", UID: "u", ResourceVersion: "7", Labels: map[string]string{"l": "l"}, Annotations: map[string]string{"a": "a"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}, OwnerReferences: []metav1.OwnerReference{{UID: "o"}},
	}
	bare := `"metadata":{"name":"n","namespace":"ns","uid":"u","resourceVersion":"7","labels":{"l":"l"},"ownerReferences":[{"apiVersion":"","kind":"","name":"","uid":"o"}]}`
	node := &corev1.Node{ObjectMeta: managed, Spec: corev1.NodeSpec{Unschedulable: true}}
	node.Status = corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"x"}}}, Conditions: []corev1.NodeCondition{{Type: "Ready", Reason: "r"}}}
	set := &appsv1.DaemonSet{ObjectMeta: managed}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "x"}}
	for _, c := range []struct {
		name string
		obj  any
		want string // a part of what is left, as JSON
		not  string // not in it
	}{
		{"pod", bulky(1), `"containerStatuses":[{"name":"main","state":{},"lastState":{},"ready":true,"restartCount":3,"image":"","imageID":""}]`, "sha256"},
		{"node", node, `"annotations":{"a":"a"}`, "images"},
		{"budget", &policyv1.PodDisruptionBudget{ObjectMeta: managed}, bare, "managedFields"},
		{"attachment", &storagev1.VolumeAttachment{ObjectMeta: managed}, bare, "managedFields"},
		{"claim", &corev1.PersistentVolumeClaim{ObjectMeta: managed}, bare, "managedFields"},
		{"volume", &corev1.PersistentVolume{ObjectMeta: managed}, bare, "managedFields"},
		{"DaemonSet", set, `"metadata":{"name":"n","namespace":"ns","uid":"u","resourceVersion":"7"}`, `"x"`},
		{"another kind", &corev1.Service{ObjectMeta: managed}, "managedFields", "nothing of it"},
		{"tombstone", cache.DeletedFinalStateUnknown{Key: "ns/n"}, "ns/n", "nothing of it"},
	} {
		before := asJSON(t, c.obj)
		got, err := kube.Transform(c.obj)
		must(t, err)
		once := asJSON(t, got)
		if asJSON(t, c.obj) != before {
			t.Errorf("%s: the object was changed", c.name)
		}
		if reflect.TypeOf(got) != reflect.TypeOf(c.obj) || !strings.Contains(once, c.want) || strings.Contains(once, c.not) {
			t.Errorf("%s: got %s, want it with %s and without %s", c.name, once, c.want, c.not)
		}
		again, err := kube.Transform(got)
		must(t, err)
		if asJSON(t, again) != once {
			t.Errorf("%s: a second time it is another: %s", c.name, asJSON(t, again))
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return string(text)
}

// Who has set the cordon and the mark of a Node is read; what else managedFields say, and of the status, is not.
func TestTransformKeepsWhoHasSetTheCordon(t *testing.T) {
	node := &corev1.Node{}
	for _, owned := range []struct{ manager, fields, subresource string }{
		{"kubelet", `{"f:metadata":{"f:labels":{"f:a":{}}}}`, ""},
		{"kubelet", `{"f:spec":{"f:unschedulable":{}}}`, "status"},
		{"kubectl", `{"f:spec":{"f:unschedulable":{}}}`, ""},
		{"belay-drain", `{"f:metadata":{"f:annotations":{"f:` + drain.MarkAnnotation + `":{}}}}`, ""},
	} {
		fields, err := testenv.FieldsV1(owned.fields)
		must(t, err)
		node.ManagedFields = append(node.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: owned.manager, Subresource: owned.subresource, FieldsV1: fields,
		})
	}
	slim, err := kube.Transform(node)
	must(t, err)
	if got, want := asJSON(t, slim.(*corev1.Node).ManagedFields), asJSON(t, node.ManagedFields[2:]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestTransformSavesMemory shows what a pod costs in the cache. R-DR-19: 30,000 pods must fit.
func TestTransformSavesMemory(t *testing.T) {
	const pods = 2000
	cost := func(keep func(*corev1.Pod) *corev1.Pod) uint64 {
		kept := make([]*corev1.Pod, pods)
		before := heap()
		for n := range kept {
			// What a watch delivers shares nothing.
			pod := &corev1.Pod{}
			must(t, json.Unmarshal([]byte(asJSON(t, bulky(n))), pod))
			kept[n] = keep(pod)
		}
		after := heap()
		runtime.KeepAlive(kept)
		return (after - before) / pods
	}
	full := cost(func(p *corev1.Pod) *corev1.Pod { return p })
	less := cost(func(p *corev1.Pod) *corev1.Pod { return slim(t, p) })
	t.Logf("a pod takes %d bytes, %d of %d are kept", full, less, full)
	if less > full*2/3 {
		t.Errorf("got %d bytes a pod of %d, want a third less at least", less, full)
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkTransform(b *testing.B) {
	pod := bulky(1)
	b.ReportAllocs()
	for b.Loop() {
		slim(b, pod)
	}
}
